// Convolution in 1 to 3 dimensions: the checks that all devices share.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/conv.h>
#include <vesta/core/ops/window.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_CONV)

/// Convolve with a padding by name, "valid" or "same". The arguments before it have no defaults: with those, a call
/// that names no padding would fit two functions.
VESTA_API Tensor conv1d(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, TextOnly padding,
                        IntList dilation = 1, int64_t groups = 1);
VESTA_API Tensor conv2d(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, TextOnly padding,
                        IntList dilation = 1, int64_t groups = 1);
VESTA_API Tensor conv3d(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, TextOnly padding,
                        IntList dilation = 1, int64_t groups = 1);

/// Checks the tensors and arguments of _convolution over a batch [N, C, ...] and works out the window.
VESTA_API Window check_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride,
                                   IntList padding, IntList dilation, int64_t groups);
/// Compute cudnn_convolution_relu and cudnn_convolution_add_relu by other ops: the bodies for all other cases.
VESTA_API Tensor cudnn_convolution_relu_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias,
                                                  IntList stride, IntList padding, IntList dilation, int64_t groups);
VESTA_API Tensor cudnn_convolution_add_relu_composite(const Tensor& input, const Tensor& weight, const Tensor& z,
                                                      MaybeDouble alpha, MaybeTensor bias, IntList stride,
                                                      IntList padding, IntList dilation, int64_t groups);
/// Does the same as check_convolution for the gradient of a batch's input, and of the weight. The gradient may have
/// fewer windows than fit: a transposed convolution with an output padding leaves some out.
VESTA_API Window check_convolution_backward_input(const Tensor& grad, const Tensor& weight, IntList input_size,
                                                  IntList stride, IntList padding, IntList dilation, int64_t groups,
                                                  const Tensor& bias = {});
/// Adds a bias [C], if there is one, to images [N, C, ...].
VESTA_API Tensor with_bias(const Tensor& y, MaybeTensor bias);
VESTA_API Window check_convolution_backward_weight(const Tensor& grad, const Tensor& input, IntList weight_size,
                                                   IntList stride, IntList padding, IntList dilation, int64_t groups);

}  // namespace vesta
