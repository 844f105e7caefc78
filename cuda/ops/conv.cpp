// Convolutions: by cuBLASLt where they are products, by cuDNN if it is available and takes them, else by the plain
// kernels.
#include <algorithm>

#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/kernels/conv.h>
#include <vesta/cuda/lib/cudnn_conv.h>
#include <vesta/cuda/ops/conv_products.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Puts the strides of a batch [N, C, ...] into the kernels' order.
void set_strides(int64_t (&to)[5], const Tensor& t) {
  to[0] = t.strides()[0], to[1] = t.strides()[1];
  std::ranges::copy(spatial_strides(t), to + 2);
}

ConvLaunch launch_of(const char* op, DType dtype, IntSpan input, IntSpan weight, const Window& w, int64_t groups,
                     StreamHandle stream) {
  constexpr int64_t kMostSize = 1 << 30, kMostPlane = int64_t(1) << 31;
  ConvLaunch l;
  l.name = op, l.stream = stream, l.dtype = dtype;
  l.batch = input[0], l.channels = input[1], l.outputs = weight[0], l.groups = groups;
  int64_t taps = 1, in = 1, out = 1;
  for (size_t d = 0; d < 3; ++d) {
    VESTA_CHECK(std::max({w.in[d], w.out[d], w.kernel[d], w.stride[d], w.padding[d], w.dilation[d]}) < kMostSize, value,
                op, ": expected sizes, strides, paddings and dilations below 2^30, got an input ", input,
                " and a weight ", weight, ".");
    l.in[d] = int(w.in[d]), l.out[d] = int(w.out[d]), l.kernel[d] = int(w.kernel[d]);
    l.stride[d] = int(w.stride[d]), l.padding[d] = int(w.padding[d]), l.dilation[d] = int(w.dilation[d]);
    taps = checked_mul(taps, w.kernel[d], op);
    in = checked_mul(in, w.in[d], op), out = checked_mul(out, w.out[d], op);
  }
  VESTA_CHECK(std::max(in, out) < kMostPlane && checked_mul(std::max(input[1], weight[0]), taps, op) < kMostPlane,
              value, op, ": expected planes and windows of fewer than 2^31 elements, got an input ", input,
              " and a weight ", weight, ".");
  return l;
}

ConvProducts products_of(const ConvLaunch& l, const Window& w) {
  return {l.dtype, l.batch, l.channels, l.outputs, l.groups, w};
}

/// Returns a batch as cuDNN takes it: lines are images of one row.
Tensor as_images(const Tensor& t) { return t.dim() == 3 ? unsqueeze(t, 2) : t; }

/// Computes with cuDNN; returns an undefined tensor if it is missing or refuses. It gets no empty products.
Tensor by_library(cudnn::Direction direction, const ConvLaunch& l, const Window& w, const Tensor& first,
                  const Tensor& second, bool channels_last) {
  if (!first.numel() || !second.numel()) return {};
  const ConvDesc desc{l.dtype, l.batch, l.channels, l.outputs, l.groups, w};
  const Tensor r = convolve(direction, desc, as_images(first), as_images(second), channels_last);
  return r.defined() && w.dims == 1 ? squeeze(r, 2) : r;
}

// Note [Convolutions and what follows]
// A bias, a residual and relu are operations of cuDNN's graph: they cost no pass over the result. The sum of the parts
// is rounded once, where separate ops round 16-bit floats after each: the more exact, but not their bits. In the order
// residual, bias, relu cuDNN has engines of its own for it, whose plans take 2 ms; anything else it compiles, 0.2 to
// 1.4 s for each shape, so that relu without a bias is left to an op of its own. So are depthwise convolutions with all
// that follows: a graph has its slowest engine for them. Relu asks to keep NaN; not every engine notes that it does.

/// Computes a convolution and what follows as one; undefined where that cannot be.
Tensor by_one_graph(const ConvLaunch& l, const Window& w, const Tensor& input, const Tensor& weight, MaybeTensor bias,
                    const Tensor& residual, bool relu, bool channels_last) {
  const bool depthwise = l.groups > 1 && weight.size(1) == 1;
  if (!input.numel() || !weight.numel() || l.dtype == DType::float64) return {};
  if (!bias.defined() || depthwise) return {};
  const ConvDesc desc{l.dtype, l.batch, l.channels, l.outputs, l.groups, w, true, residual.defined(), relu};
  const Tensor r = convolve_with(desc, as_images(input), as_images(weight), *bias, residual, channels_last);
  return r.defined() && w.dims == 1 ? squeeze(r, 2) : r;
}

Tensor convolution_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                          IntList dilation, int64_t groups) {
  const Window w = check_convolution(input, weight, bias, stride, padding, dilation, groups);
  const OperandDevice device(input);
  ConvLaunch l = launch_of("convolution", input.dtype(), input.sizes(), weight.sizes(), w, groups, device.stream());
  const bool last = convolution_is_channels_last(input, weight);
  if (!last) {
    if (Tensor y = products_of(l, w).forward(input, weight, *bias, device); y.defined()) return y;
  }
  if (Tensor y = by_one_graph(l, w, input, weight, bias, {}, false, last); y.defined()) return y;
  if (Tensor y = by_library(cudnn::Direction::forward, l, w, input, weight, last); y.defined()) {
    if (!bias.defined()) return y;
    Dims column(size_t(w.dims + 1), 1);
    column[0] = l.outputs;
    return add_to(y, view(contiguous_values(bias), column));
  }
  Tensor y = empty_tensor(w.result_sizes(l.batch, l.outputs), input.dtype(), input.device());
  if (!y.numel()) return y;
  Tensor k = contiguous_values(weight), b = bias.defined() ? contiguous_values(bias) : Tensor();
  l.image = input.impl()->data(), set_strides(l.image_strides, input);
  l.weight = k.impl()->data(), l.result = y.impl()->data();
  if (b.defined()) l.bias = b.impl()->data();
  run_conv_forward(l);
  return dense_image(y, last);
}

/// Computes relu(convolution + z) as one graph; undefined where that cannot be. z may be missing.
Tensor with_relu(const char* op, const Tensor& input, const Tensor& weight, const Tensor& z, MaybeTensor bias,
                 IntList stride, IntList padding, IntList dilation, int64_t groups) {
  if ((input.dim() != 4 && input.dim() != 5) || !is_float(input.dtype())) return {};
  const Window w = check_convolution(input, weight, bias, stride, padding, dilation, groups);
  const Dims sizes = w.result_sizes(input.size(0), weight.size(0));
  if (z.defined() && (z.dtype() != input.dtype() || !std::ranges::equal(z.sizes(), sizes))) return {};
  const OperandDevice device(input);
  const ConvLaunch l = launch_of(op, input.dtype(), input.sizes(), weight.sizes(), w, groups, device.stream());
  return by_one_graph(l, w, input, weight, bias, z, true, convolution_is_channels_last(input, weight));
}

Tensor convolution_relu_kernel(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride,
                               IntList padding, IntList dilation, int64_t groups) {
  const Tensor y = with_relu("cudnn_convolution_relu", input, weight, {}, bias, stride, padding, dilation, groups);
  return y.defined() ? y : cudnn_convolution_relu_composite(input, weight, bias, stride, padding, dilation, groups);
}

Tensor convolution_add_relu_kernel(const Tensor& input, const Tensor& weight, const Tensor& z, MaybeDouble alpha,
                                   MaybeTensor bias, IntList stride, IntList padding, IntList dilation,
                                   int64_t groups) {
  if (alpha.value_or(1) == 1) {
    Tensor y = with_relu("cudnn_convolution_add_relu", input, weight, z, bias, stride, padding, dilation, groups);
    if (y.defined()) return y;
  }
  return cudnn_convolution_add_relu_composite(input, weight, z, alpha, bias, stride, padding, dilation, groups);
}

Tensor input_gradient_kernel(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride,
                             IntList padding, IntList dilation, int64_t groups, bool channels_last, MaybeTensor bias) {
  constexpr const char* op = "convolution_backward_input";
  const Window w = check_convolution_backward_input(grad, weight, input_size, stride, padding, dilation, groups, bias);
  if (bias.defined()) {  // in a pass of its own, as PyTorch has it: 16-bit floats are rounded before it as well
    const Tensor y = with_bias(
        input_gradient_kernel(grad, weight, input_size, stride, padding, dilation, groups, channels_last, {}), bias);
    return channels_last ? to_channels_last(y) : y;
  }
  const OperandDevice device(grad);
  ConvLaunch l = launch_of(op, grad.dtype(), input_size, weight.sizes(), w, groups, device.stream());
  if (!channels_last) {
    if (Tensor gx = products_of(l, w).input_gradient(grad, weight, device); gx.defined()) return gx;
  }
  if (Tensor gx = by_library(cudnn::Direction::input_gradient, l, w, weight, grad, channels_last); gx.defined())
    return gx;
  Tensor gx = empty_tensor(input_size, grad.dtype(), grad.device());
  if (!gx.numel()) return gx;
  Tensor k = contiguous_values(weight);
  l.image = grad.impl()->data(), set_strides(l.image_strides, grad);
  l.weight = k.impl()->data(), l.result = gx.impl()->data();
  run_conv_input_gradient(l);
  return dense_image(gx, channels_last);
}

Tensor weight_gradient_kernel(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride,
                              IntList padding, IntList dilation, int64_t groups, bool channels_last) {
  constexpr const char* op = "convolution_backward_weight";
  const Window w = check_convolution_backward_weight(grad, input, weight_size, stride, padding, dilation, groups);
  const OperandDevice device(grad);
  ConvLaunch l = launch_of(op, grad.dtype(), input.sizes(), weight_size, w, groups, device.stream());
  if (!channels_last) {
    if (Tensor gw = products_of(l, w).weight_gradient(grad, input, device); gw.defined()) return gw;
  }
  if (Tensor gw = by_library(cudnn::Direction::weight_gradient, l, w, input, grad, channels_last); gw.defined())
    return gw;
  Tensor gw = empty_tensor(weight_size, grad.dtype(), grad.device());
  if (!gw.numel()) return gw;
  l.image = input.impl()->data(), set_strides(l.image_strides, input);
  l.weight = grad.impl()->data(), set_strides(l.grad_strides, grad);
  l.result = gw.impl()->data();
  Tensor partial;
  if (const int64_t nbytes = partial_bytes(l)) {
    partial = empty_tensor(Dims{nbytes}, DType::uint8, grad.device());
    l.partial = partial.impl()->data();
  }
  run_conv_weight_gradient(l);
  return dense_image(gw, channels_last);
}

}  // namespace

void register_conv() {
  ops::_convolution.set_kernel(DeviceType::cuda, convolution_kernel);
  ops::cudnn_convolution_relu.set_kernel(DeviceType::cuda, convolution_relu_kernel);
  ops::cudnn_convolution_add_relu.set_kernel(DeviceType::cuda, convolution_add_relu_kernel);
  ops::_convolution_backward_input.set_kernel(DeviceType::cuda, input_gradient_kernel);
  ops::_convolution_backward_weight.set_kernel(DeviceType::cuda, weight_gradient_kernel);
}

}  // namespace vesta::cuda
