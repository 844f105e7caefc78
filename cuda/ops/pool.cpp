// Max pooling and its gradient.
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/pool.h>
#include <vesta/core/precision.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/pool.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Returns a launch with the geometry of a window.
PoolLaunch launch_of(const Window& w) {
  PoolLaunch l;
  for (size_t d = 0; d < 3; ++d) {
    l.in[d] = w.in[d], l.out[d] = w.out[d], l.kernel[d] = w.kernel[d];
    l.stride[d] = w.stride[d], l.padding[d] = w.padding[d], l.dilation[d] = w.dilation[d];
  }
  return l;
}

/// Returns values and, if they are wanted, indices.
TensorPair max_pool(const Tensor& input, const Window& w, bool wants_places) {
  const OperandDevice device(input);
  const bool last = suggests_channels_last(input);
  Tensor x = dense_image(input, last);
  const Dims sizes = w.result_sizes(x.sizes()[0], x.sizes()[1]);
  Tensor y = empty_image(sizes, last, x.dtype(), x.device()), indices;
  if (wants_places) indices = empty_image(sizes, last, DType::int64, x.device());
  if (y.numel() == 0) return {y, indices};
  PoolLaunch l = launch_of(w);
  l.name = "_max_pool", l.stream = device.stream(), l.dtype = x.dtype();
  l.planes = sizes[0] * sizes[1], l.channels = last ? sizes[1] : 1;
  l.input = x.impl()->data(), l.values = y.impl()->data();
  if (wants_places) l.indices = indices.data_ptr<int64_t>();
  run_max_pool(l);
  return {y, indices};
}

TensorPair max_pool_kernel(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                           bool ceil_mode) {
  return max_pool(input, check_max_pool(input, kernel, stride, padding, dilation, ceil_mode), true);
}

Tensor max_pool_values_kernel(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                              bool ceil_mode) {
  return std::get<0>(max_pool(input, check_max_pool(input, kernel, stride, padding, dilation, ceil_mode), false));
}

Tensor max_pool_backward_kernel(const Tensor& grad, const Tensor& indices, IntList input_size, IntList kernel,
                                IntList stride, IntList padding, IntList dilation) {
  constexpr const char* op = "_max_pool_backward";
  const int64_t plane = check_max_pool_backward(grad, indices, input_size);
  const OperandDevice device(grad);
  const bool last = suggests_channels_last(indices);
  Tensor g = dense_image(grad, last), at = dense_image(indices, last);
  Tensor gx = empty_image(input_size, last, grad.dtype(), grad.device());
  if (!gx.numel()) return gx;
  PoolGradientLaunch l;
  l.name = op, l.stream = device.stream(), l.dtype = g.dtype();
  l.in = plane, l.planes = gx.numel() / plane, l.out = g.numel() / l.planes;
  l.channels = last ? gx.sizes()[1] : 1;
  l.grad = g.impl()->data(), l.indices = at.data_ptr<int64_t>();
  l.result = gx.impl()->data();
  l.fault = fault_of(device.index());
  if (g.numel() && !kernel.empty()) {
    const bool ceil_mode = true;  // whichever it was: the sizes of the result are known
    l.window = launch_of(pool_window(input_size, kernel, stride, padding, dilation, ceil_mode, op));
    for (int64_t d = 2; d < g.dim(); ++d) l.window.out[place_of(d - 2, g.dim() - 2)] = g.sizes()[size_t(d)];
    if (run_max_pool_backward_of_windows(l)) return gx;
  }
  VESTA_CUDA_CHECK(rt::memset_async(gx.impl()->data(), 0, size_t(gx.numel() * itemsize(gx.dtype())), device.stream()));
  if (!g.numel()) return gx;
  if (kAddedInPlace.has(l.dtype) && may_be_nondeterministic()) run_max_pool_backward_in_any_order(l);
  else run_max_pool_backward(l);
  return gx;
}

TensorPair fractional_max_pool_kernel(const Tensor& input, const Tensor& samples, IntList outputs, IntList kernel) {
  constexpr const char* op = "_fractional_max_pool";
  check_fractional_max_pool(input, samples, outputs, kernel);
  if (samples.dtype() != input.dtype()) return ops::_fractional_max_pool.body()(input, samples, outputs, kernel);
  check_one_device(op, {&input, &samples});
  const OperandDevice device(input);
  const Tensor x = contiguous_values(input), numbers = contiguous_values(samples);
  FractionalPoolLaunch l;
  l.name = op, l.stream = device.stream(), l.dtype = x.dtype(), l.fault = fault_of(device.index());
  l.dims = int(x.dim()) - 2, l.planes = x.sizes()[0] * x.sizes()[1];
  Dims sizes(x.sizes());
  for (size_t d = 0; d < outputs.size(); ++d) {
    const size_t to = 3 - outputs.size() + d;
    l.in[to] = x.sizes()[d + 2], l.out[to] = outputs[d], l.kernel[to] = kernel[d];
    sizes[d + 2] = outputs[d];
  }
  Tensor y = empty_tensor(sizes, x.dtype(), x.device()), indices = empty_tensor(sizes, DType::int64, x.device());
  if (y.numel() == 0) return {y, indices};
  l.input = x.impl()->data(), l.samples = numbers.impl()->data();
  l.values = y.impl()->data(), l.indices = indices.data_ptr<int64_t>();
  run_fractional_max_pool(l);
  return {y, indices};
}

}  // namespace

void register_pool() {
  ops::_max_pool_values.set_kernel(DeviceType::cuda, max_pool_values_kernel);
  ops::_max_pool.set_kernel(DeviceType::cuda, max_pool_kernel);
  ops::_max_pool_backward.set_kernel(DeviceType::cuda, max_pool_backward_kernel);
  ops::_fractional_max_pool.set_kernel(DeviceType::cuda, fractional_max_pool_kernel);
}

}  // namespace vesta::cuda
