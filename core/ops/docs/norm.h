// Docs of the topic norm: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char native_batch_norm[] =
    "native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): (output, mean [C], "
    "1 / sqrt(var + eps) [C]) over all dimensions but 1; updates the running statistics in training (Ioffe and "
    "Szegedy 2015).";
inline constexpr char _batch_norm_backward[] =
    "_batch_norm_backward(grad, input, weight, mean, invstd, training): gradients of input, weight [C] and bias [C].";
inline constexpr char batch_norm[] =
    "batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5): "
    "(x - mean) / sqrt(var + eps) * weight + bias per channel (dimension 1); Ioffe and Szegedy 2015.";
inline constexpr char layer_norm[] =
    "layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5): (x - mean) / sqrt(var + eps) * weight + "
    "bias over the last dimensions, which are normalized_shape (Ba et al. 2016).";
inline constexpr char normalize[] = "normalize(input, p=2, dim=1, eps=1e-12): input / max(norm(input, p, dim), eps).";

}  // namespace vesta::doc
