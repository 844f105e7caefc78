// Convolutions of tensors: checks and strides for convolution.h.
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/view.h>

namespace vesta::cpu {
namespace {

Elem elem_of(DType d, const char* op) {
  switch (d) {
    case DType::float32: return Elem::f32;
    case DType::float64: return Elem::f64;
    case DType::bfloat16: return Elem::bf16;
    case DType::float16: return Elem::f16;
    default: fail(Cause::not_implemented, op, ": expected a floating-point dtype, got ", d, ".");
  }
}

ConvShape conv_shape(IntSpan input, IntSpan weight, const Window2d& w, int64_t groups) {
  ConvShape s{input[0], input[1], weight[0]};
  s.groups = groups;
  for (size_t d = 0; d < 2; ++d) {
    s.in[d + 1] = w.in[d], s.kernel[d + 1] = w.kernel[d], s.out[d + 1] = w.out[d];
    s.stride[d + 1] = w.stride[d], s.dilation[d + 1] = w.dilation[d], s.pad[d + 1] = w.padding[d];
  }
  return s;
}
ImageStrides strides_of(const Tensor& t) {
  return {t.strides()[0], t.strides()[1], {0, t.strides()[2], t.strides()[3]}};
}

Tensor conv2d_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                     IntList dilation, int64_t groups) {
  if (input.dim() == 3)
    return squeeze(conv2d_kernel(unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0);
  Window2d w = check_conv2d(input, weight, bias, stride, padding, dilation, groups);
  Tensor k = contiguous(weight), b = bias.defined() ? contiguous(bias) : Tensor();
  Tensor y = empty_tensor(Dims{input.sizes()[0], weight.sizes()[0], w.out[0], w.out[1]}, input.dtype());
  if (y.numel()) {
    conv_forward(elem_of(input.dtype(), "conv2d"), conv_shape(input.sizes(), weight.sizes(), w, groups),
                 input.impl()->data(), strides_of(input), k.impl()->data(), b.defined() ? b.impl()->data() : nullptr,
                 y.impl()->data(), strides_of(y));
  }
  return y;
}

Tensor input_gradient_kernel(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride,
                             IntList padding, IntList dilation, int64_t groups) {
  if (grad.dim() == 3) {
    Dims sizes{1};
    for (int64_t s : input_size) sizes.push_back(s);
    return squeeze(input_gradient_kernel(unsqueeze(grad, 0), weight, sizes, stride, padding, dilation, groups), 0);
  }
  Window2d w = check_conv2d_backward_input(grad, weight, input_size, stride, padding, dilation, groups);
  Tensor k = contiguous(weight), gx = empty_tensor(input_size, grad.dtype());
  if (gx.numel()) {
    conv_backward_data(elem_of(grad.dtype(), "_conv2d_backward_input"),
                       conv_shape(input_size, weight.sizes(), w, groups), grad.impl()->data(), strides_of(grad),
                       k.impl()->data(), nullptr, gx.impl()->data(), strides_of(gx));
  }
  return gx;
}

Tensor weight_gradient_kernel(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride,
                              IntList padding, IntList dilation, int64_t groups) {
  if (grad.dim() == 3) {
    return weight_gradient_kernel(unsqueeze(grad, 0), unsqueeze(input, 0), weight_size, stride, padding, dilation,
                                  groups);
  }
  Window2d w = check_conv2d_backward_weight(grad, input, weight_size, stride, padding, dilation, groups);
  Tensor gw = empty_tensor(weight_size, grad.dtype());
  if (gw.numel()) {
    conv_backward_weights(elem_of(grad.dtype(), "_conv2d_backward_weight"),
                          conv_shape(input.sizes(), weight_size, w, groups), input.impl()->data(), strides_of(input),
                          grad.impl()->data(), strides_of(grad), gw.impl()->data(), nullptr);
  }
  return gw;
}

}  // namespace

void register_conv() {
  ops::conv2d.set_kernel(DeviceType::cpu, conv2d_kernel);
  ops::_conv2d_backward_input.set_kernel(DeviceType::cpu, input_gradient_kernel);
  ops::_conv2d_backward_weight.set_kernel(DeviceType::cpu, weight_gradient_kernel);
}

}  // namespace vesta::cpu
