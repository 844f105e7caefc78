// Convolutions: shapes.
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/memory_format.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

Tensor convolution(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                   IntList dilation, int64_t groups) {
  const Window w = check_convolution(input, weight, bias, stride, padding, dilation, groups);
  return image(w.result_sizes(input.sizes()[0], weight.sizes()[0]), convolution_is_channels_last(input, weight),
               input.dtype());
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride, IntList padding,
                      IntList dilation, int64_t groups, bool channels_last, MaybeTensor bias) {
  check_convolution_backward_input(grad, weight, input_size, stride, padding, dilation, groups, bias);
  return image(input_size, channels_last, grad.dtype());
}

Tensor weight_gradient(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride, IntList padding,
                       IntList dilation, int64_t groups, bool channels_last) {
  check_convolution_backward_weight(grad, input, weight_size, stride, padding, dilation, groups);
  return image(weight_size, channels_last, grad.dtype());
}

}  // namespace

void register_conv() {
  ops::_convolution.set_kernel(DeviceType::meta, convolution);
  ops::_convolution_backward_input.set_kernel(DeviceType::meta, input_gradient);
  ops::_convolution_backward_weight.set_kernel(DeviceType::meta, weight_gradient);
}

}  // namespace vesta::meta
