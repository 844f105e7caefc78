// The op list, pooling. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_POOL(OP)                                                                                             \
  OP(FUNCTION, Tensor, max_pool1d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite,                  \
     accepts(kReals))                                                                                                  \
  OP(FUNCTION, TensorPair, max_pool1d_with_indices,                                                                    \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite,                  \
     accepts(kReals), gives(Gives::same, Gives::int64))                                                                \
  OP(FUNCTION, Tensor, adaptive_avg_pool1d, (const Tensor& input, IntList output_size), (input, output_size),          \
     composite, accepts(kFloats))                                                                                      \
  OP(FUNCTION, TensorPair, adaptive_max_pool1d, (const Tensor& input, IntList output_size), (input, output_size),      \
     composite, accepts(kReals), gives(Gives::same, Gives::int64))                                                     \
  OP(FUNCTION, Tensor, max_pool2d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite,                  \
     accepts(kReals))                                                                                                  \
  OP(FUNCTION, TensorPair, max_pool2d_with_indices,                                                                    \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite, hidden,          \
     accepts(kReals), gives(Gives::same, Gives::int64))                                                                \
  OP(FUNCTION, Tensor, adaptive_avg_pool2d, (const Tensor& input, IntList output_size), (input, output_size),          \
     composite, hidden, accepts(kFloats))                                                                              \
  OP(FUNCTION, TensorPair, adaptive_max_pool2d, (const Tensor& input, IntList output_size), (input, output_size),      \
     composite, hidden, accepts(kReals), gives(Gives::same, Gives::int64))                                             \
  OP(FUNCTION, Tensor, max_pool3d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite,                  \
     accepts(kReals))                                                                                                  \
  OP(FUNCTION, TensorPair, max_pool3d_with_indices,                                                                    \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite, hidden,          \
     accepts(kReals), gives(Gives::same, Gives::int64))                                                                \
  OP(FUNCTION, Tensor, adaptive_avg_pool3d, (const Tensor& input, IntList output_size), (input, output_size),          \
     composite, hidden, accepts(kFloats))                                                                              \
  OP(FUNCTION, TensorPair, adaptive_max_pool3d, (const Tensor& input, IntList output_size), (input, output_size),      \
     composite, hidden, accepts(kReals), gives(Gives::same, Gives::int64))                                             \
  OP(FUNCTION, Tensor, avg_pool1d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, bool ceil_mode = false,      \
      bool count_include_pad = true), (input, kernel_size, stride, padding, ceil_mode, count_include_pad), composite,  \
     accepts(kReals))                                                                                                  \
  OP(FUNCTION, Tensor, avg_pool2d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, bool ceil_mode = false,      \
      bool count_include_pad = true, MaybeInt divisor_override = {}),                                                  \
     (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override), composite, functional,     \
     exact_out, accepts(kReals))                                                                                       \
  OP(FUNCTION, Tensor, avg_pool3d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, bool ceil_mode = false,      \
      bool count_include_pad = true, MaybeInt divisor_override = {}),                                                  \
     (input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override), composite, functional,     \
     exact_out, accepts(kReals))                                                                                       \
  OP(FUNCTION, Tensor, _max_pool_values,                                                                               \
     (const Tensor& input, IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool ceil_mode),    \
     (input, kernel_size, stride, padding, dilation, ceil_mode), composite, hidden, accepts(kReals))                   \
  OP(FUNCTION, TensorPair, _max_pool,                                                                                  \
     (const Tensor& input, IntList kernel_size, IntList stride, IntList padding, IntList dilation, bool ceil_mode),    \
     (input, kernel_size, stride, padding, dilation, ceil_mode), hidden, accepts(kReals),                              \
     gives(Gives::same, Gives::int64))                                                                                 \
  OP(FUNCTION, Tensor, _max_pool_backward,                                                                             \
     (const Tensor& grad, const Tensor& indices, IntList input_size, IntList kernel_size = {}, IntList stride = {},    \
      IntList padding = 0, IntList dilation = 1),                                                                      \
     (grad, indices, input_size, kernel_size, stride, padding, dilation), hidden, accepts(kReals))                     \
  OP(FUNCTION, TensorPair, _fractional_max_pool,                                                                       \
     (const Tensor& input, const Tensor& samples, IntList output_size, IntList kernel_size),                           \
     (input, samples, output_size, kernel_size), composite, hidden, accepts(kFloats), gives(Gives::same, Gives::int64))
