// Convolutions of tensors: checks and strides for convolution.h.
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>

#include <algorithm>
#include <memory>

namespace vesta::cpu {
namespace {

Elem float_elem_of(DType d, const char* op) {
  switch (d) {
    case DType::float32: return Elem::f32;
    case DType::float64: return Elem::f64;
    case DType::bfloat16: return Elem::bf16;
    case DType::float16: return Elem::f16;
    default: fail(Cause::not_implemented, op, ": expected a floating-point dtype, got ", d, ".");
  }
}

ConvShape conv_shape(IntSpan input, IntSpan weight, const Window& w, int64_t groups) {
  return {input[0], input[1], weight[0], groups, w.in, w.kernel, w.out, w.stride, w.dilation, w.padding};
}
ImageStrides strides_of(const Tensor& t) { return {t.strides()[0], t.strides()[1], spatial_strides(t)}; }

/// Returns dense weights [O, C, ...] with channels last, if so.
Tensor in_layout(const Tensor& weights, bool channels_last) {
  if (!channels_last) return weights;
  Tensor r = empty_image(weights.sizes(), true, weights.dtype());
  copy_values(r, weights);
  return r;
}

/// A weight with its values in order, and its identity where what is packed of it may be kept. Where channels lie last,
/// so is the copy in order.
struct Weights {
  Tensor dense;
  Weight identity;
  const void* data() const { return dense.impl()->data(); }
};
Weights weights_of(const Tensor& weight) {
  Weight identity = keepable(weight);
  if (weight.is_contiguous() || !identity) return {contiguous_values(weight), identity};
  if (!suggests_channels_last(weight) || !weight.impl()->dense()) return {contiguous_values(weight), {}};
  identity.channels_last = true;
  PackedKey key{identity, PackedAs::in_order, nullptr, {}};
  std::ranges::copy(weight.sizes(), key.geometry.begin());
  const int64_t bytes = weight.numel() * weight.element_size();
  const auto copy = [&] { return std::make_shared<const Tensor>(contiguous_values(weight)); };
  return {*kept_or_made<Tensor>(key, bytes, copy), identity};
}

Tensor convolution_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                          IntList dilation, int64_t groups) {
  Window w = check_convolution(input, weight, bias, stride, padding, dilation, groups);
  const Weights k = weights_of(weight);
  Tensor b = bias.defined() ? contiguous_values(bias) : Tensor();
  Tensor y = empty_image(w.result_sizes(input.sizes()[0], weight.sizes()[0]),
                         convolution_is_channels_last(input, weight), input.dtype());
  if (y.numel()) {
    conv_forward(float_elem_of(input.dtype(), "convolution"), conv_shape(input.sizes(), weight.sizes(), w, groups),
                 input.impl()->data(), strides_of(input), k.data(), b.defined() ? b.impl()->data() : nullptr,
                 y.impl()->data(), strides_of(y), k.identity);
  }
  return y;
}

Tensor input_gradient_kernel(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride,
                             IntList padding, IntList dilation, int64_t groups, bool channels_last, MaybeTensor bias) {
  Window w = check_convolution_backward_input(grad, weight, input_size, stride, padding, dilation, groups, bias);
  const Weights k = weights_of(weight);
  Tensor b = bias.defined() ? contiguous_values(bias) : Tensor();
  Tensor gx = empty_image(input_size, channels_last, grad.dtype());
  if (gx.numel()) {
    conv_backward_data(float_elem_of(grad.dtype(), "convolution_backward_input"),
                       conv_shape(input_size, weight.sizes(), w, groups), grad.impl()->data(), strides_of(grad),
                       k.data(), b.defined() ? b.impl()->data() : nullptr, gx.impl()->data(), strides_of(gx),
                       k.identity);
  }
  return gx;
}

Tensor weight_gradient_kernel(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride,
                              IntList padding, IntList dilation, int64_t groups, bool channels_last) {
  Window w = check_convolution_backward_weight(grad, input, weight_size, stride, padding, dilation, groups);
  Tensor gw = empty_tensor(weight_size, grad.dtype());
  if (gw.numel()) {
    conv_backward_weights(float_elem_of(grad.dtype(), "convolution_backward_weight"),
                          conv_shape(input.sizes(), weight_size, w, groups), input.impl()->data(), strides_of(input),
                          grad.impl()->data(), strides_of(grad), gw.impl()->data(), nullptr);
  }
  return in_layout(gw, channels_last);
}

}  // namespace

void register_conv() {
  ops::_convolution.set_kernel(DeviceType::cpu, convolution_kernel);
  ops::_convolution_backward_input.set_kernel(DeviceType::cpu, input_gradient_kernel);
  ops::_convolution_backward_weight.set_kernel(DeviceType::cpu, weight_gradient_kernel);
}

}  // namespace vesta::cpu
