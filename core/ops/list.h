// The roll call: every op's name, result, parameters with defaults, and how to pass them on. One line an op.
//
// This file includes nothing and declares nothing. Whoever includes it hands macros to the lists and gets, for each op,
// C++ functions and methods, Op objects, the Python argument parser, stubs, docs: see README.md in this folder.
//
//   UNARY(name, Struct, (parameters), (arguments))        pointwise: name(input, ...), name_(...), name_out(...)
//   BINARY(name, Struct, (parameters), (arguments))       pointwise with broadcasting: name(input, other, ...)
//   TERNARY(name, Struct, first, second, third)           pointwise with broadcasting: the operands by name
//   METHOD(Result, name, (parameters), (arguments))       function name(input, ...) and method
//   FUNCTION(Result, name, (parameters), (arguments))     function only
//
// `input` is not in the parameter list of UNARY, BINARY and METHOD; a parameter is spelled as C++ declares it.
#pragma once

#define VESTA_COMMA(...) __VA_OPT__(, ) __VA_ARGS__

// ---- pointwise, by topic: the struct lives in pointwise/TOPIC.h ----

#define VESTA_POINTWISE_ARITHMETIC(UNARY, BINARY, TERNARY) \
  UNARY(neg, Neg, (), ())                                  \
  UNARY(abs, Abs, (), ())                                  \
  UNARY(sign, Sign, (), ())                                \
  UNARY(sgn, Sgn, (), ())                                  \
  UNARY(square, Square, (), ())                            \
  UNARY(sqrt, Sqrt, (), ())                                \
  UNARY(rsqrt, Rsqrt, (), ())                              \
  UNARY(reciprocal, Reciprocal, (), ())                    \
  UNARY(floor, Floor, (), ())                              \
  UNARY(ceil, Ceil, (), ())                                \
  UNARY(conj_physical, ConjPhysical, (), ())               \
  BINARY(add, Add, (double alpha = 1), (alpha))            \
  BINARY(sub, Sub, (double alpha = 1), (alpha))            \
  BINARY(mul, Mul, (), ())                                 \
  BINARY(true_divide, TrueDivide, (), ())                  \
  BINARY(floor_divide, FloorDivide, (), ())                \
  BINARY(trunc_divide, TruncDivide, (), ())                \
  BINARY(remainder, Remainder, (), ())                     \
  BINARY(pow, Pow, (), ())                                 \
  BINARY(maximum, Maximum, (), ())                         \
  BINARY(minimum, Minimum, (), ())

#define VESTA_POINTWISE_EXPLOG(UNARY, BINARY, TERNARY) \
  UNARY(exp, Exp, (), ())                              \
  UNARY(log, Log, (), ())                              \
  UNARY(log1p, Log1p, (), ())

#define VESTA_POINTWISE_TRIGONOMETRIC(UNARY, BINARY, TERNARY) \
  UNARY(sin, Sin, (), ())                                     \
  UNARY(cos, Cos, (), ())                                     \
  UNARY(tanh, Tanh, (), ())                                   \
  BINARY(atan2, Atan2, (), ())

#define VESTA_POINTWISE_ACTIVATION(UNARY, BINARY, TERNARY)                           \
  UNARY(sigmoid, Sigmoid, (), ())                                                    \
  UNARY(relu, Relu, (), ())                                                          \
  UNARY(leaky_relu, LeakyRelu, (double negative_slope = 0.01), (negative_slope))     \
  UNARY(softplus, Softplus, (double beta = 1, double threshold = 20), (beta, threshold)) \
  UNARY(logsigmoid, LogSigmoid, (), ())                                              \
  UNARY(erf, Erf, (), ())                                                            \
  UNARY(erfc, Erfc, (), ())                                                          \
  UNARY(gelu_erf, GeluErf, (), ())                                                   \
  UNARY(gelu_tanh, GeluTanh, (), ())

#define VESTA_POINTWISE_COMPARE(UNARY, BINARY, TERNARY) \
  UNARY(isnan, IsNan, (), ())                           \
  UNARY(isinf, IsInf, (), ())                           \
  UNARY(isfinite, IsFinite, (), ())                     \
  UNARY(logical_not, LogicalNot, (), ())                \
  UNARY(bitwise_not, BitwiseNot, (), ())                \
  BINARY(eq, Eq, (), ())                                \
  BINARY(ne, Ne, (), ())                                \
  BINARY(lt, Lt, (), ())                                \
  BINARY(le, Le, (), ())                                \
  BINARY(gt, Gt, (), ())                                \
  BINARY(ge, Ge, (), ())                                \
  BINARY(logical_and, LogicalAnd, (), ())               \
  BINARY(logical_or, LogicalOr, (), ())                 \
  BINARY(logical_xor, LogicalXor, (), ())               \
  BINARY(bitwise_and, BitwiseAnd, (), ())               \
  BINARY(bitwise_or, BitwiseOr, (), ())                 \
  BINARY(bitwise_xor, BitwiseXor, (), ())

#define VESTA_POINTWISE_SELECT(UNARY, BINARY, TERNARY)  \
  BINARY(clamp_min, ClampMin, (), ())                   \
  BINARY(clamp_max, ClampMax, (), ())                   \
  TERNARY(clamp_between, ClampBetween, input, min, max) \
  TERNARY(where, Where, condition, input, other)

#define VESTA_POINTWISE(UNARY, BINARY, TERNARY)         \
  VESTA_POINTWISE_ARITHMETIC(UNARY, BINARY, TERNARY)    \
  VESTA_POINTWISE_EXPLOG(UNARY, BINARY, TERNARY)        \
  VESTA_POINTWISE_TRIGONOMETRIC(UNARY, BINARY, TERNARY) \
  VESTA_POINTWISE_ACTIVATION(UNARY, BINARY, TERNARY)    \
  VESTA_POINTWISE_COMPARE(UNARY, BINARY, TERNARY)       \
  VESTA_POINTWISE_SELECT(UNARY, BINARY, TERNARY)

// ---- structured: an Op object with a kernel per device; doc and meta function in TOPIC.h ----

#define VESTA_VIEW_OPS(METHOD, FUNCTION)                                                                             \
  METHOD(Tensor, view, (IntList size), (size))                                                                       \
  METHOD(Tensor, permute, (IntList dims), (dims))                                                                    \
  METHOD(Tensor, transpose, (int64_t dim0, int64_t dim1), (dim0, dim1))                                              \
  METHOD(Tensor, expand, (IntList size), (size))                                                                     \
  METHOD(Tensor, squeeze, (const MaybeDims& dim = {}), (dim))                                                        \
  METHOD(Tensor, unsqueeze, (int64_t dim), (dim))                                                                    \
  METHOD(Tensor, select, (int64_t dim, int64_t index), (dim, index))                                                 \
  METHOD(Tensor, slice, (int64_t dim = 0, MaybeInt start = {}, MaybeInt end = {}, int64_t step = 1),                 \
         (dim, start, end, step))                                                                                    \
  METHOD(Tensor, diagonal, (int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1), (offset, dim1, dim2))           \
  METHOD(Tensor, as_strided, (IntList size, IntList stride, MaybeInt storage_offset = {}),                           \
         (size, stride, storage_offset))

#define VESTA_COPY_OPS(METHOD, FUNCTION)                                                             \
  METHOD(Tensor, clone, (Text memory_format = "preserve_format"), (memory_format))                   \
  METHOD(Tensor, to_copy, (MaybeDType dtype = {}, MaybeDevice device = {}, bool non_blocking = false),  \
         (dtype, device, non_blocking))                                                              \
  METHOD(Tensor, copy_, (const Tensor& src, bool non_blocking = false), (src, non_blocking))         \
  METHOD(Tensor, fill_, (Scalar value), (value))

#define VESTA_REDUCE_OPS(METHOD, FUNCTION)                                                                        \
  METHOD(Tensor, sum, (const MaybeDims& dim = {}, bool keepdim = false, MaybeDType dtype = {}),                   \
         (dim, keepdim, dtype))                                                                                   \
  METHOD(Tensor, mean, (const MaybeDims& dim = {}, bool keepdim = false, MaybeDType dtype = {}),                  \
         (dim, keepdim, dtype))                                                                                   \
  METHOD(Tensor, cumsum, (int64_t dim, MaybeDType dtype = {}), (dim, dtype))                                      \
  METHOD(Tensor, amax, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim))                         \
  METHOD(Tensor, amin, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim))                         \
  METHOD(Tensor, any, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim))                          \
  METHOD(Tensor, all, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim))                          \
  METHOD(TensorPair, max_dim, (int64_t dim, bool keepdim = false), (dim, keepdim))                                \
  METHOD(TensorPair, min_dim, (int64_t dim, bool keepdim = false), (dim, keepdim))                                \
  METHOD(Tensor, argmax, (MaybeInt dim = {}, bool keepdim = false), (dim, keepdim))                               \
  METHOD(Tensor, argmin, (MaybeInt dim = {}, bool keepdim = false), (dim, keepdim))

#define VESTA_INDEX_OPS(METHOD, FUNCTION)                                                                         \
  METHOD(Tensor, index_tensors, (TensorList indices), (indices))                                                  \
  METHOD(Tensor, index_put_, (TensorList indices, const Tensor& values, bool accumulate = false),                 \
         (indices, values, accumulate))                                                                           \
  METHOD(Tensor, index_select, (int64_t dim, const Tensor& index), (dim, index))                                  \
  METHOD(Tensor, index_add_, (int64_t dim, const Tensor& index, const Tensor& source, double alpha = 1),          \
         (dim, index, source, alpha))                                                                             \
  METHOD(Tensor, flip, (IntList dims), (dims))                                                                    \
  METHOD(Tensor, gather, (int64_t dim, const Tensor& index), (dim, index))                                        \
  METHOD(Tensor, scatter_add_, (int64_t dim, const Tensor& index, const Tensor& src), (dim, index, src))          \
  METHOD(Tensor, nonzero, (), ())                                                                                 \
  FUNCTION(Tensor, cat, (TensorList tensors, int64_t dim = 0), (tensors, dim))                                    \
  FUNCTION(Tensor, embedding, (const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1),            \
           (weight, indices, padding_idx))

#define VESTA_FACTORY_OPS(METHOD, FUNCTION)                                                                       \
  FUNCTION(Tensor, empty, (IntList size, MaybeDType dtype = {}, MaybeDevice device = {}), (size, dtype, device))  \
  FUNCTION(Tensor, full, (IntList size, Scalar fill_value, MaybeDType dtype = {}, MaybeDevice device = {}),       \
           (size, fill_value, dtype, device))                                                                     \
  FUNCTION(Tensor, arange_range, (Scalar start, Scalar end, Scalar step, MaybeDType dtype = {},                   \
           MaybeDevice device = {}), (start, end, step, dtype, device))                                           \
  FUNCTION(Tensor, linspace, (Scalar start, Scalar end, int64_t steps, MaybeDType dtype = {},                     \
           MaybeDevice device = {}), (start, end, steps, dtype, device))                                          \
  FUNCTION(Tensor, eye, (int64_t n, MaybeInt m = {}, MaybeDType dtype = {}, MaybeDevice device = {}),             \
           (n, m, dtype, device))                                                                                 \
  FUNCTION(Tensor, randperm, (int64_t n, Generator* generator = nullptr, MaybeDType dtype = {},                   \
           MaybeDevice device = {}), (n, generator, dtype, device))

#define VESTA_RANDOM_OPS(METHOD, FUNCTION)                                                                        \
  METHOD(Tensor, uniform_, (double from = 0, double to = 1, Generator* generator = nullptr), (from, to, generator)) \
  METHOD(Tensor, normal_, (double mean = 0, double std = 1, Generator* generator = nullptr), (mean, std, generator)) \
  METHOD(Tensor, random_, (MaybeInt from = {}, MaybeInt to = {}, Generator* generator = nullptr),                 \
         (from, to, generator))                                                                                   \
  METHOD(Tensor, bernoulli_, (double p = 0.5, Generator* generator = nullptr), (p, generator))                    \
  METHOD(Tensor, bernoulli, (Generator* generator = nullptr), (generator))                                        \
  FUNCTION(TensorPair, native_dropout, (const Tensor& input, double p, bool train), (input, p, train))

#define VESTA_NN_OPS(METHOD, FUNCTION)                                                                            \
  METHOD(Tensor, matmul, (const Tensor& other), (other))                                                          \
  FUNCTION(Tensor, linear, (const Tensor& input, const Tensor& weight, const MaybeTensor& bias = {}),             \
           (input, weight, bias))                                                                                 \
  FUNCTION(Tensor, conv2d, (const Tensor& input, const Tensor& weight, const MaybeTensor& bias = {},              \
           IntList stride = 1, IntList padding = 0, IntList dilation = 1, int64_t groups = 1),                    \
           (input, weight, bias, stride, padding, dilation, groups))                                              \
  FUNCTION(Tensor, conv2d_input_gradient, (const Tensor& grad, const Tensor& weight, IntList input_size,          \
           IntList stride, IntList padding, IntList dilation, int64_t groups),                                    \
           (grad, weight, input_size, stride, padding, dilation, groups))                                         \
  FUNCTION(Tensor, conv2d_weight_gradient, (const Tensor& grad, const Tensor& input, IntList weight_size,         \
           IntList stride, IntList padding, IntList dilation, int64_t groups),                                    \
           (grad, input, weight_size, stride, padding, dilation, groups))                                         \
  FUNCTION(TensorPair, max_pool2d_with_indices, (const Tensor& input, IntList kernel_size, IntList stride = {},   \
           IntList padding = 0, IntList dilation = 1, bool ceil_mode = false),                                    \
           (input, kernel_size, stride, padding, dilation, ceil_mode))                                            \
  FUNCTION(Tensor, max_pool2d_gradient, (const Tensor& grad, const Tensor& indices, IntList input_size),          \
           (grad, indices, input_size))                                                                           \
  METHOD(Tensor, softmax_float, (int64_t dim), (dim))                                                             \
  METHOD(Tensor, log_softmax_float, (int64_t dim), (dim))                                                         \
  FUNCTION(Tensor, softmax_gradient, (const Tensor& grad, const Tensor& output, int64_t dim, bool log),           \
           (grad, output, dim, log))                                                                              \
  FUNCTION(TensorPair, cross_entropy_rows, (const Tensor& input, const Tensor& target,                            \
           const MaybeTensor& weight, int64_t ignore_index, double label_smoothing),                              \
           (input, target, weight, ignore_index, label_smoothing))                                                \
  FUNCTION(Tensor, cross_entropy_gradient, (const Tensor& grad, const Tensor& input, const Tensor& target,        \
           const MaybeTensor& weight, const Tensor& logsumexp, int64_t ignore_index, double label_smoothing),     \
           (grad, input, target, weight, logsumexp, ignore_index, label_smoothing))                               \
  FUNCTION(TensorTriple, native_batch_norm, (const Tensor& input, const MaybeTensor& weight,                      \
           const MaybeTensor& bias, const MaybeTensor& running_mean, const MaybeTensor& running_var,              \
           bool training, double momentum, double eps),                                                           \
           (input, weight, bias, running_mean, running_var, training, momentum, eps))                             \
  FUNCTION(TensorTriple, batch_norm_gradient, (const Tensor& grad, const Tensor& input, const MaybeTensor& weight, \
           const Tensor& mean, const Tensor& invstd, bool training),                                              \
           (grad, input, weight, mean, invstd, training))

#define VESTA_OPTIM_OPS(METHOD, FUNCTION)                                                                         \
  FUNCTION(void, _fused_sgd_, (TensorList params, TensorList grads, TensorList momentum_buffer_list,              \
           double weight_decay, double momentum, double lr, double dampening, bool nesterov, bool maximize,       \
           bool is_first_step),                                                                                   \
           (params, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize,       \
            is_first_step))                                                                                       \
  FUNCTION(void, _fused_adam_, (TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, \
           TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,             \
           double weight_decay, double eps, bool amsgrad, bool maximize, bool decoupled = false),                 \
           (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay,   \
            eps, amsgrad, maximize, decoupled))                                                                   \
  FUNCTION(void, _fused_rmsprop_, (TensorList params, TensorList grads, TensorList square_avgs,                   \
           TensorList grad_avgs, TensorList momentum_buffer_list, TensorList state_steps, double lr,              \
           double alpha, double eps, double weight_decay, double momentum, bool centered, bool maximize),         \
           (params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, lr, alpha, eps,             \
            weight_decay, momentum, centered, maximize))

#define VESTA_AMP_OPS(METHOD, FUNCTION)                                                                           \
  FUNCTION(void, _amp_unscale_, (TensorList grads, const Tensor& found_inf, const Tensor& inv_scale),             \
           (grads, found_inf, inv_scale))                                                                         \
  FUNCTION(void, _amp_update_scale_, (const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, \
           double growth_factor, double backoff_factor, int64_t growth_interval),                                 \
           (scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval))

#define VESTA_STRUCTURED(METHOD, FUNCTION) \
  VESTA_VIEW_OPS(METHOD, FUNCTION)         \
  VESTA_COPY_OPS(METHOD, FUNCTION)         \
  VESTA_REDUCE_OPS(METHOD, FUNCTION)       \
  VESTA_INDEX_OPS(METHOD, FUNCTION)        \
  VESTA_FACTORY_OPS(METHOD, FUNCTION)      \
  VESTA_RANDOM_OPS(METHOD, FUNCTION)       \
  VESTA_NN_OPS(METHOD, FUNCTION)           \
  VESTA_OPTIM_OPS(METHOD, FUNCTION)        \
  VESTA_AMP_OPS(METHOD, FUNCTION)

// ---- composite: plain functions of other ops (composite*.cpp); the gradient is theirs ----

#define VESTA_COMPOSITE(METHOD, FUNCTION)                                                                             \
  METHOD(Tensor, div, (const Tensor& other, MaybeText rounding_mode = {}), (other, rounding_mode))                    \
  METHOD(Tensor, clamp, (const MaybeTensor& min = {}, const MaybeTensor& max = {}), (min, max))                       \
  METHOD(Tensor, gelu, (Text approximate = "none"), (approximate))                                                    \
  METHOD(Tensor, reshape, (IntList shape), (shape))                                                                   \
  METHOD(Tensor, flatten, (int64_t start_dim = 0, int64_t end_dim = -1), (start_dim, end_dim))                        \
  METHOD(Tensor, t, (), ())                                                                                           \
  METHOD(Tensor, mT, (), ())                                                                                          \
  METHOD(Tensor, narrow, (int64_t dim, int64_t start, int64_t length), (dim, start, length))                          \
  METHOD(TensorVector, unbind, (int64_t dim = 0), (dim))                                                              \
  METHOD(TensorVector, split, (IntList split_size, int64_t dim = 0), (split_size, dim))                               \
  METHOD(TensorVector, chunk, (int64_t chunks, int64_t dim = 0), (chunks, dim))                                       \
  METHOD(Tensor, contiguous, (), ())                                                                                  \
  METHOD(Tensor, zero_, (), ())                                                                                       \
  METHOD(Tensor, conj, (), ())                                                                                        \
  METHOD(Tensor, mm, (const Tensor& mat2), (mat2))                                                                    \
  METHOD(Tensor, bmm, (const Tensor& mat2), (mat2))                                                                   \
  METHOD(Tensor, addmm, (const Tensor& mat1, const Tensor& mat2, double beta = 1, double alpha = 1),                  \
         (mat1, mat2, beta, alpha))                                                                                   \
  METHOD(Tensor, softmax, (int64_t dim, MaybeDType dtype = {}), (dim, dtype))                                         \
  METHOD(Tensor, log_softmax, (int64_t dim, MaybeDType dtype = {}), (dim, dtype))                                     \
  METHOD(Tensor, var, (const MaybeDims& dim = {}, double correction = 1, bool keepdim = false),                       \
         (dim, correction, keepdim))                                                                                  \
  METHOD(Tensor, std, (const MaybeDims& dim = {}, double correction = 1, bool keepdim = false),                       \
         (dim, correction, keepdim))                                                                                  \
  METHOD(Tensor, norm, (double p = 2, const MaybeDims& dim = {}, bool keepdim = false, MaybeDType dtype = {}),        \
         (p, dim, keepdim, dtype))                                                                                    \
  METHOD(Tensor, masked_fill, (const Tensor& mask, const Tensor& value), (mask, value))                               \
  METHOD(Tensor, masked_fill_, (const Tensor& mask, const Tensor& value), (mask, value))                              \
  METHOD(Tensor, masked_select, (const Tensor& mask), (mask))                                                         \
  METHOD(Tensor, index_add, (int64_t dim, const Tensor& index, const Tensor& source, double alpha = 1),               \
         (dim, index, source, alpha))                                                                                 \
  METHOD(Tensor, index_put, (TensorList indices, const Tensor& values, bool accumulate = false),                      \
         (indices, values, accumulate))                                                                               \
  METHOD(Tensor, scatter_add, (int64_t dim, const Tensor& index, const Tensor& src), (dim, index, src))               \
  FUNCTION(Tensor, stack, (TensorList tensors, int64_t dim = 0), (tensors, dim))                                      \
  FUNCTION(Tensor, zeros, (IntList size, MaybeDType dtype = {}, MaybeDevice device = {}), (size, dtype, device))      \
  FUNCTION(Tensor, ones, (IntList size, MaybeDType dtype = {}, MaybeDevice device = {}), (size, dtype, device))       \
  FUNCTION(Tensor, rand, (IntList size, Generator* generator = nullptr, MaybeDType dtype = {},                        \
           MaybeDevice device = {}), (size, generator, dtype, device))                                                \
  FUNCTION(Tensor, randn, (IntList size, Generator* generator = nullptr, MaybeDType dtype = {},                       \
           MaybeDevice device = {}), (size, generator, dtype, device))                                                \
  FUNCTION(Tensor, randint, (int64_t low, int64_t high, IntList size, Generator* generator = nullptr,                 \
           MaybeDType dtype = {}, MaybeDevice device = {}), (low, high, size, generator, dtype, device))              \
  METHOD(Tensor, empty_like, (MaybeDType dtype = {}, MaybeDevice device = {}), (dtype, device))                       \
  METHOD(Tensor, zeros_like, (MaybeDType dtype = {}, MaybeDevice device = {}), (dtype, device))                       \
  METHOD(Tensor, ones_like, (MaybeDType dtype = {}, MaybeDevice device = {}), (dtype, device))                        \
  METHOD(Tensor, full_like, (Scalar fill_value, MaybeDType dtype = {}, MaybeDevice device = {}),                      \
         (fill_value, dtype, device))                                                                                 \
  METHOD(Tensor, rand_like, (MaybeDType dtype = {}, MaybeDevice device = {}), (dtype, device))                        \
  METHOD(Tensor, randn_like, (MaybeDType dtype = {}, MaybeDevice device = {}), (dtype, device))                       \
  METHOD(Tensor, new_empty, (IntList size, MaybeDType dtype = {}, MaybeDevice device = {}), (size, dtype, device))    \
  METHOD(Tensor, new_zeros, (IntList size, MaybeDType dtype = {}, MaybeDevice device = {}), (size, dtype, device))    \
  METHOD(Tensor, new_ones, (IntList size, MaybeDType dtype = {}, MaybeDevice device = {}), (size, dtype, device))     \
  METHOD(Tensor, new_full, (IntList size, Scalar fill_value, MaybeDType dtype = {}, MaybeDevice device = {}),         \
         (size, fill_value, dtype, device))                                                                           \
  METHOD(Tensor, sum_to_size, (IntList size), (size))                                                                 \
  FUNCTION(Tensor, max_pool2d, (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0,   \
           IntList dilation = 1, bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode)) \
  FUNCTION(Tensor, dropout, (const Tensor& input, double p = 0.5, bool training = true), (input, p, training))        \
  FUNCTION(Tensor, batch_norm, (const Tensor& input, const MaybeTensor& running_mean,                                 \
           const MaybeTensor& running_var, const MaybeTensor& weight = {}, const MaybeTensor& bias = {},              \
           bool training = false, double momentum = 0.1, double eps = 1e-5),                                          \
           (input, running_mean, running_var, weight, bias, training, momentum, eps))                                 \
  FUNCTION(Tensor, layer_norm, (const Tensor& input, IntList normalized_shape, const MaybeTensor& weight = {},        \
           const MaybeTensor& bias = {}, double eps = 1e-5), (input, normalized_shape, weight, bias, eps))            \
  FUNCTION(Tensor, normalize, (const Tensor& input, double p = 2, const MaybeDims& dim = 1, double eps = 1e-12),      \
           (input, p, dim, eps))                                                                                      \
  FUNCTION(Tensor, binary_cross_entropy_with_logits, (const Tensor& input, const Tensor& target,                      \
           const MaybeTensor& weight = {}, Text reduction = "mean", const MaybeTensor& pos_weight = {}),              \
           (input, target, weight, reduction, pos_weight))                                                            \
  FUNCTION(Tensor, cross_entropy, (const Tensor& input, const Tensor& target, const MaybeTensor& weight = {},         \
           int64_t ignore_index = -100, Text reduction = "mean", double label_smoothing = 0),                         \
           (input, target, weight, ignore_index, reduction, label_smoothing))                                         \
  FUNCTION(Tensor, nll_loss, (const Tensor& input, const Tensor& target, const MaybeTensor& weight = {},              \
           int64_t ignore_index = -100, Text reduction = "mean"), (input, target, weight, ignore_index, reduction))   \
  FUNCTION(Tensor, mse_loss, (const Tensor& input, const Tensor& target, Text reduction = "mean"),                    \
           (input, target, reduction))

// The topics of pointwise ops: X(topic, list). A topic has a header pointwise/TOPIC.h and a kernel file per device.
#define VESTA_POINTWISE_TOPICS(X)                       \
  X(arithmetic, VESTA_POINTWISE_ARITHMETIC)             \
  X(explog, VESTA_POINTWISE_EXPLOG)                     \
  X(trigonometric, VESTA_POINTWISE_TRIGONOMETRIC)       \
  X(activation, VESTA_POINTWISE_ACTIVATION)             \
  X(compare, VESTA_POINTWISE_COMPARE)                   \
  X(select, VESTA_POINTWISE_SELECT)
