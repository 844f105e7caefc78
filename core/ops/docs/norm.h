// Docs of the topic norm: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char native_batch_norm[] =
    "native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): (output, mean [C], "
    "1 / sqrt(var + eps) [C]) over all dimensions but 1; updates the running statistics in training (Ioffe and "
    "Szegedy 2015).";
inline constexpr char _batch_norm_evaluation[] =
    "_batch_norm_evaluation(input, weight, bias, running_mean, running_var, eps): (output, a copy of running_mean, "
    "1 / sqrt(running_var + eps)), the statistics in the dtype that the gradient computes in.";
inline constexpr char _batch_norm_backward[] =
    "_batch_norm_backward(grad, input, weight, mean, invstd, training): gradients of input, weight [C] and bias [C].";
inline constexpr char batch_norm[] =
    "batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5): "
    "(x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1); Ioffe and Szegedy 2015.";
inline constexpr char native_layer_norm[] =
    "native_layer_norm(input, normalized_shape, weight, bias, eps): (output, mean, 1 / sqrt(var + eps)) of layer_norm; "
    "the statistics have input's shape with 1 for the last dimensions, which are normalized_shape (Ba et al. 2016).";
inline constexpr char _layer_norm_backward[] =
    "_layer_norm_backward(grad, input, normalized_shape, weight, mean, rstd): gradients of input, weight and bias.";
inline constexpr char layer_norm[] =
    "layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5): (x - mean) / sqrt(var + eps) * weight + "
    "bias over the last dimensions, which are normalized_shape (Ba et al. 2016).";
inline constexpr char _unit_vectors[] =
    "_unit_vectors(input, dim, eps, raises_value): (output, size) with size |x| along dim, which is kept, and output "
    "x / max(size, eps). Where eps is larger, size has no part in the gradient, or with raises_value its own.";
inline constexpr char _unit_vectors_backward[] =
    "_unit_vectors_backward(grad, input, size, dim, eps, raises_value): gradient of _unit_vectors' input.";
inline constexpr char normalize[] = "normalize(input, p=2, dim=1, eps=1e-12): input / max(norm(input, p, dim), eps).";
inline constexpr char native_group_norm[] =
    "native_group_norm(input, weight, bias, N, C, HxW, group, eps): (output, mean, 1 / sqrt(var + eps)) of group_norm; "
    "the statistics are [N, group] (Wu and He 2018).";
inline constexpr char _group_norm_backward[] =
    "_group_norm_backward(grad, input, weight, mean, rstd, N, C, HxW, group): gradients of input, weight and bias.";
inline constexpr char group_norm[] =
    "group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True): brings each group of "
    "channels of each sample to mean 0 and variance 1 (Wu and He 2018), then scales and shifts channels. input [N, "
    "C, *], weight and bias [C].";
inline constexpr char instance_norm[] =
    "instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled): "
    "brings each channel of each sample to mean 0 and variance 1 (Ulyanov et al. 2016). input [N, C, *], all others "
    "[C]; running statistics are updated by the mean over the batch.";
inline constexpr char _fused_rms_norm[] =
    "_fused_rms_norm(input, normalized_shape, weight, eps): (output, 1 / sqrt(mean(x^2) + eps)) of rms_norm; the "
    "latter "
    "has input's shape with 1 for the last dimensions.";
inline constexpr char _rms_norm_backward[] =
    "_rms_norm_backward(grad, input, normalized_shape, weight, rstd): gradients of input and weight.";
inline constexpr char rms_norm[] =
    "rms_norm(input, normalized_shape, weight=None, eps=None): x / sqrt(mean(x^2) + eps) over the last dimensions, "
    "of normalized_shape (Zhang and Sennrich 2019), times weight of that shape. eps if None: that of float32, or "
    "float64's "
    "for float64.";

}  // namespace vesta::doc
