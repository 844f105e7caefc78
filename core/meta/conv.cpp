// Convolutions: shapes.
#include <vesta/core/ops/conv.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

Tensor convolution(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                   IntList dilation, int64_t groups) {
  const Window w = check_convolution(input, weight, bias, stride, padding, dilation, groups);
  return result(w.result_sizes(input.sizes()[0], weight.sizes()[0]), input.dtype());
}

Tensor input_gradient(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride, IntList padding,
                      IntList dilation, int64_t groups) {
  check_convolution_backward_input(grad, weight, input_size, stride, padding, dilation, groups);
  return result(input_size, grad.dtype());
}

Tensor weight_gradient(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride, IntList padding,
                       IntList dilation, int64_t groups) {
  check_convolution_backward_weight(grad, input, weight_size, stride, padding, dilation, groups);
  return result(weight_size, grad.dtype());
}

}  // namespace

void register_conv() {
  ops::_convolution.set_kernel(DeviceType::meta, convolution);
  ops::_convolution_backward_input.set_kernel(DeviceType::meta, input_gradient);
  ops::_convolution_backward_weight.set_kernel(DeviceType::meta, weight_gradient);
}

}  // namespace vesta::meta
