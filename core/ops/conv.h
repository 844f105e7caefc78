// Convolution and pooling: windows, and the checks that all devices share.
#pragma once
#include <array>

#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/conv.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_CONV)

/// One 2-d window operation: sizes, strides and so on per dimension, checked.
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
VESTA_API Window2d check_conv2d_backward_input(const Tensor& grad, const Tensor& weight, IntList input_size,
                                               IntList stride, IntList padding, IntList dilation, int64_t groups);
VESTA_API Window2d check_conv2d_backward_weight(const Tensor& grad, const Tensor& input, IntList weight_size,
                                                IntList stride, IntList padding, IntList dilation, int64_t groups);
/// Checks the arguments of max_pool2d over a batch [N, C, H, W] and works out the window.
VESTA_API Window2d check_max_pool2d(const Tensor& input, IntList kernel, IntList stride, IntList padding,
                                    IntList dilation, bool ceil_mode);
/// Checks the tensors of max_pool2d's gradient: one index per gradient, as many planes in as out.
VESTA_API void check_max_pool2d_backward(const Tensor& grad, const Tensor& indices, IntList input_size);

}  // namespace vesta
