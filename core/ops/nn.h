// Ops of neural networks that are no pointwise formula: products, convolution, pooling, softmax, losses, normalisation,
// and the fused optimizer steps. Docs, and the checks that all devices share.
#pragma once
#include <array>

#include <vesta/core/tensor.h>

namespace vesta {

namespace doc {
inline constexpr char matmul[] =
    "matmul(input, other): matrix product. 1-d with 1-d gives the dot product, 2-d with 2-d the matrix product; a 1-d "
    "operand is a row (input) or a column (other); leading dimensions broadcast. Error: inner sizes or dtypes differ.";
inline constexpr char linear[] =
    "linear(input, weight, bias=None): input @ weight.T + bias. input [*, in], weight [out, in], bias [out]; gives [*, "
    "out].";
inline constexpr char conv2d[] =
    "conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): 2-d cross-correlation. input [N, C, "
    "H, W] "
    "or [C, H, W], weight [O, C / groups, KH, KW], bias [O]; gives [N, O, HO, WO].";
inline constexpr char conv2d_input_gradient[] =
    "conv2d_input_gradient(grad, weight, input_size, stride, padding, dilation, groups): gradient of conv2d's input.";
inline constexpr char conv2d_weight_gradient[] =
    "conv2d_weight_gradient(grad, input, weight_size, stride, padding, dilation, groups): gradient of conv2d's weight.";
inline constexpr char max_pool2d_with_indices[] =
    "max_pool2d_with_indices(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): (values, "
    "indices into the flattened H x W plane) of the largest in each window; NaN wins. input [N, C, H, W] or [C, H, W].";
inline constexpr char max_pool2d_gradient[] =
    "max_pool2d_gradient(grad, indices, input_size): adds each gradient to the place its maximum came from.";
inline constexpr char softmax_float[] =
    "softmax_float(input, dim): exp(x) / sum(exp(x)) along dim, for floating dtypes.";
inline constexpr char log_softmax_float[] =
    "log_softmax_float(input, dim): x - log(sum(exp(x))) along dim, for floating dtypes.";
inline constexpr char softmax_gradient[] =
    "softmax_gradient(grad, output, dim, log): gradient of softmax (or log-softmax) from its output.";
inline constexpr char cross_entropy_rows[] =
    "cross_entropy_rows(input, target, weight, ignore_index, label_smoothing): (loss [N], logsumexp [N]) of logits [N, "
    "C] "
    "and class numbers [N]. Error: a class outside [0, C) that is not ignore_index.";
inline constexpr char cross_entropy_gradient[] =
    "cross_entropy_gradient(grad, input, target, weight, logsumexp, ignore_index, label_smoothing): gradient of the "
    "logits.";
inline constexpr char native_batch_norm[] =
    "native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps): (output, mean [C], 1 "
    "/ "
    "sqrt(var + eps) [C]) over all dimensions but 1; updates the running statistics in training (Ioffe and Szegedy "
    "2015).";
inline constexpr char batch_norm_gradient[] =
    "batch_norm_gradient(grad, input, weight, mean, invstd, training): gradients of input, weight [C] and bias [C].";
inline constexpr char _fused_sgd_[] =
    "_fused_sgd_(params, grads, momentum_buffer_list, ...): one SGD step over lists of tensors, in place.";
inline constexpr char _fused_adam_[] =
    "_fused_adam_(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, ...): one Adam step over lists "
    "of "
    "tensors, in place; decoupled=True is AdamW. state_steps are one-element float tensors, counted up here.";
inline constexpr char _fused_rmsprop_[] =
    "_fused_rmsprop_(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, ...): one RMSprop step "
    "over lists of tensors, in place. state_steps are one-element float tensors, counted up here.";

inline constexpr char mm[] =
    "mm(input, mat2): product of two matrices [n, k] and [k, m]. Error: anything but two 2-d tensors.";
inline constexpr char bmm[] = "bmm(input, mat2): products of two batches of matrices [b, n, k] and [b, k, m].";
inline constexpr char addmm[] = "addmm(input, mat1, mat2, *, beta=1, alpha=1): beta * input + alpha * (mat1 @ mat2).";
inline constexpr char softmax[] =
    "softmax(input, dim, dtype=None): exp(x) / sum(exp(x)) along dim; rows sum to 1. Integers need a dtype.";
inline constexpr char log_softmax[] =
    "log_softmax(input, dim, dtype=None): x - log(sum(exp(x))) along dim, without overflow. Integers need a dtype.";
inline constexpr char max_pool2d[] =
    "max_pool2d(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): the largest value of "
    "each "
    "window. input [N, C, H, W] or [C, H, W].";
inline constexpr char dropout[] =
    "dropout(input, p=0.5, training=True): zeroes each element with probability p and scales the rest by 1 / (1 - p) "
    "(Srivastava et al. 2014); the input itself when not training.";
inline constexpr char batch_norm[] =
    "batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5): (x "
    "- mean) "
    "/ sqrt(var + eps) * weight + bias per channel (dimension 1); Ioffe and Szegedy 2015.";
inline constexpr char layer_norm[] =
    "layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5): (x - mean) / sqrt(var + eps) * weight + "
    "bias "
    "over the last dimensions, which are normalized_shape (Ba et al. 2016).";
inline constexpr char normalize[] = "normalize(input, p=2, dim=1, eps=1e-12): input / max(norm(input, p, dim), eps).";
inline constexpr char binary_cross_entropy_with_logits[] =
    "binary_cross_entropy_with_logits(input, target, weight=None, reduction='mean', pos_weight=None): "
    "-(pos_weight * t * log s + (1 - t) * log(1 - s)) for s = sigmoid(input), without overflow. Error: shapes that "
    "differ.";
inline constexpr char cross_entropy[] =
    "cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0): cross-entropy "
    "of "
    "logits. input [N, C], [C] or [N, C, d1, ...]; target class numbers (int64) without the C dimension, or "
    "probabilities of "
    "input's shape.";
inline constexpr char nll_loss[] =
    "nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean'): -weight[target] * input[target] of "
    "log-probabilities [N, C], [C] or [N, C, d1, ...].";
inline constexpr char mse_loss[] =
    "mse_loss(input, target, reduction='mean'): (input - target)^2, its mean, or its sum. Error: shapes that differ.";
}  // namespace doc

/// Is one 2-d window operation: sizes, strides and so on per dimension, checked.
struct Window2d {
  std::array<int64_t, 2> kernel, stride, padding, dilation, in, out;
};
/// Expands one number to two; raises unless there are one or two.
VESTA_API std::array<int64_t, 2> pair_of(IntList v, const char* op, const char* argument);
/// Checks the arguments of a convolution and works out the window.
VESTA_API Window2d conv2d_window(IntSpan input, IntSpan weight, IntList stride, IntList padding, IntList dilation,
                                 int64_t groups, const char* op);
/// Checks the arguments of a pooling and works out the window.
VESTA_API Window2d pool2d_window(IntSpan input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                                 bool ceil_mode, const char* op);
/// Checks the tensors and arguments of conv2d over a batch [N, C, H, W] and works out the window.
VESTA_API Window2d check_conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                                IntList padding, IntList dilation, int64_t groups);
/// Does the same for the gradient of a batch's input, and of the weight.
VESTA_API Window2d check_conv2d_input_gradient(const Tensor& grad, const Tensor& weight, IntList input_size,
                                               IntList stride, IntList padding, IntList dilation, int64_t groups);
VESTA_API Window2d check_conv2d_weight_gradient(const Tensor& grad, const Tensor& input, IntList weight_size,
                                                IntList stride, IntList padding, IntList dilation, int64_t groups);
/// Checks the arguments of max_pool2d over a batch [N, C, H, W] and works out the window.
VESTA_API Window2d check_max_pool2d(const Tensor& input, IntList kernel, IntList stride, IntList padding,
                                    IntList dilation, bool ceil_mode);
/// Checks the tensors of max_pool2d's gradient: one index per gradient, as many planes in as out.
VESTA_API void check_max_pool2d_gradient(const Tensor& grad, const Tensor& indices, IntList input_size);
/// Checks logits [N, C], class numbers [N] and class weights [C].
VESTA_API void check_class_target(const Tensor& input, const Tensor& target, const Tensor& weight, const char* op);

}  // namespace vesta
