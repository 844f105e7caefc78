// The op list, convolution. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_CONV(OP)                                                                                             \
  OP(FUNCTION, Tensor, conv1d,                                                                                         \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList dilation = 1, int64_t groups = 1), (input, weight, bias, stride, padding, dilation, groups), composite,  \
     casts(lower, lower), accepts(kNumbers))                                                                           \
  OP(PYTHON_FORM, Tensor, conv1d, padding,                                                                             \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1,                            \
      TextOnly padding = "valid", IntList dilation = 1, int64_t groups = 1),                                           \
     (input, weight, bias, stride, padding, dilation, groups),                                                         \
     conv1d(input, weight, bias, stride, padding, dilation, groups), accepts(kNumbers))                                \
  OP(FUNCTION, Tensor, conv2d,                                                                                         \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList dilation = 1, int64_t groups = 1), (input, weight, bias, stride, padding, dilation, groups), composite,  \
     casts(lower, lower), accepts(kNumbers))                                                                           \
  OP(PYTHON_FORM, Tensor, conv2d, padding,                                                                             \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1,                            \
      TextOnly padding = "valid", IntList dilation = 1, int64_t groups = 1),                                           \
     (input, weight, bias, stride, padding, dilation, groups),                                                         \
     conv2d(input, weight, bias, stride, padding, dilation, groups), accepts(kNumbers))                                \
  OP(FUNCTION, Tensor, conv3d,                                                                                         \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList dilation = 1, int64_t groups = 1), (input, weight, bias, stride, padding, dilation, groups), composite,  \
     casts(lower, lower), accepts(kNumbers))                                                                           \
  OP(PYTHON_FORM, Tensor, conv3d, padding,                                                                             \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1,                            \
      TextOnly padding = "valid", IntList dilation = 1, int64_t groups = 1),                                           \
     (input, weight, bias, stride, padding, dilation, groups),                                                         \
     conv3d(input, weight, bias, stride, padding, dilation, groups), accepts(kNumbers))                                \
  OP(FUNCTION, Tensor, conv_transpose1d,                                                                               \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList output_padding = 0, int64_t groups = 1, IntList dilation = 1),                                           \
     (input, weight, bias, stride, padding, output_padding, groups, dilation), composite, casts(lower, lower),         \
     accepts(kNumbers))                                                                                                \
  OP(FUNCTION, Tensor, conv_transpose2d,                                                                               \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList output_padding = 0, int64_t groups = 1, IntList dilation = 1),                                           \
     (input, weight, bias, stride, padding, output_padding, groups, dilation), composite, casts(lower, lower),         \
     accepts(kNumbers))                                                                                                \
  OP(FUNCTION, Tensor, conv_transpose3d,                                                                               \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, IntList stride = 1, IntList padding = 0,       \
      IntList output_padding = 0, int64_t groups = 1, IntList dilation = 1),                                           \
     (input, weight, bias, stride, padding, output_padding, groups, dilation), composite, casts(lower, lower),         \
     accepts(kNumbers))                                                                                                \
  OP(FUNCTION, Tensor, convolution,                                                                                    \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias, IntTuple stride, IntTuple padding,                  \
      IntTuple dilation, bool transposed, IntTuple output_padding, int64_t groups),                                    \
     (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), composite,                  \
     casts(lower, lower), accepts(kNumbers))                                                                           \
  OP(FUNCTION, Tensor, cudnn_convolution_relu,                                                                         \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias, IntTuple stride, IntTuple padding,                  \
      IntTuple dilation, int64_t groups),                                                                              \
     (input, weight, bias, stride, padding, dilation, groups), composite, casts(lower, lower),                         \
     accepts(kReals))                                                                                                  \
  OP(FUNCTION, Tensor, cudnn_convolution_add_relu,                                                                     \
     (const Tensor& input, const Tensor& weight, const Tensor& z, MaybeDouble alpha, MaybeTensor bias,                 \
      IntTuple stride, IntTuple padding, IntTuple dilation, int64_t groups),                                           \
     (input, weight, z, alpha, bias, stride, padding, dilation, groups), composite, casts(lower, lower),               \
     accepts(kReals))                                                                                                  \
  OP(FUNCTION, Tensor, _convolution,                                                                                   \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias, IntTuple stride, IntTuple padding,                  \
      IntTuple dilation, int64_t groups),                                                                              \
     (input, weight, bias, stride, padding, dilation, groups), hidden, accepts(kNumbers))                              \
  OP(FUNCTION, Tensor, _convolution_backward_input,                                                                    \
     (const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride, IntList padding,                   \
      IntList dilation, int64_t groups, bool channels_last = false, MaybeTensor bias = {}),                            \
     (grad, weight, input_size, stride, padding, dilation, groups, channels_last, bias), hidden, accepts(kNumbers))    \
  OP(FUNCTION, Tensor, _convolution_backward_weight,                                                                   \
     (const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride, IntList padding,                   \
      IntList dilation, int64_t groups, bool channels_last = false),                                                   \
     (grad, input, weight_size, stride, padding, dilation, groups, channels_last), hidden, accepts(kNumbers))
