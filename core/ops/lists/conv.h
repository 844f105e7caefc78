// The op list, convolution and pooling. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_CONV(OP)                                                                                             \
  OP(FUNCTION, Tensor, conv2d,                                                                                         \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList dilation = 1, int64_t groups = 1), (input, weight, bias, stride, padding, dilation, groups),             \
     casts(lower, lower))                                                                                              \
  OP(FUNCTION_AS, Tensor, conv2d, padding,                                                                             \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, Word padding = "valid",    \
      IntList dilation = 1, int64_t groups = 1), (input, weight, bias, stride, padding, dilation, groups), composite)  \
  OP(FUNCTION, Tensor, _conv2d_backward_input,                                                                         \
     (const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride, IntList padding,                   \
      IntList dilation, int64_t groups), (grad, weight, input_size, stride, padding, dilation, groups), hidden)        \
  OP(FUNCTION, Tensor, _conv2d_backward_weight,                                                                        \
     (const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride, IntList padding,                   \
      IntList dilation, int64_t groups), (grad, input, weight_size, stride, padding, dilation, groups), hidden)        \
  OP(FUNCTION, TensorPair, max_pool2d_with_indices,                                                                    \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), hidden)                     \
  OP(FUNCTION, Tensor, _max_pool2d_backward, (const Tensor& grad, const Tensor& indices, IntList input_size),          \
     (grad, indices, input_size), hidden)                                                                              \
  OP(FUNCTION, Tensor, max_pool2d,                                                                                     \
     (const Tensor& input, IntList kernel_size, IntList stride = {}, IntList padding = 0, IntList dilation = 1,        \
      bool ceil_mode = false), (input, kernel_size, stride, padding, dilation, ceil_mode), composite)
