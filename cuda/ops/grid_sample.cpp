// Reading images at positions of a grid, and the gradients. That of the input sorts the positions: see the kernels.
#include <vesta/core/ops/grid_sample.h>

#include <bit>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/cuda/check.h>
#include <vesta/cuda/kernels/grid_sample.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/sort_keys.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// The operands in the form that the kernels read.
struct GridOperands {
  Tensor x, grid;
  GridSampleLaunch launch;
  GridOperands(const char* name, const GridSampling& s, const Tensor& input, const Tensor& places, StreamHandle stream)
      : x(dense_image(input, suggests_channels_last(input))), grid(contiguous_values(places)) {
    GridSampleLaunch& l = launch;
    l.name = name, l.stream = stream, l.dtype = x.dtype();
    l.batch = s.batch, l.channels = s.channels, l.height = s.height, l.width = s.width, l.places = s.places();
    l.nearest = s.nearest, l.align_corners = s.align_corners, l.padding = s.padding;
    l.pixels = suggests_channels_last(input);
    l.input = x.impl()->data(), l.grid = grid.impl()->data();
  }
};

Tensor filled_with_zeros(IntSpan sizes, const Tensor& like, StreamHandle stream) {
  Tensor t = empty_tensor(sizes, like.dtype(), like.device());
  VESTA_CUDA_CHECK(rt::memset_async(t.impl()->data(), 0, size_t(t.numel() * itemsize(t.dtype())), stream));
  return t;
}

Tensor grid_sampler_kernel(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                           bool align_corners) {
  const GridSampling s = check_grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners);
  const OperandDevice device(input);
  Tensor y = empty_tensor(s.result_sizes(), input.dtype(), input.device());
  if (y.numel() == 0) return y;
  GridOperands operands("grid_sampler", s, input, grid, device.stream());
  operands.launch.output = y.impl()->data();
  run_grid_sample(operands.launch);
  return y;
}

/// Returns the gradient of the input, in its layout.
Tensor input_gradient(GridSampleLaunch l, const Tensor& input) {
  Tensor r = empty_image(input.sizes(), l.pixels, input.dtype(), input.device());
  const int64_t total = l.batch * l.places, none = l.batch * l.cells();
  l.wide = none >= UINT32_MAX || total >= int64_t(1) << 31;
  Keys keys(total, int(std::bit_width(uint64_t(none))), l.wide, input.device());
  const DType wide = compute_type(input.dtype());
  const Tensor weights = empty_tensor({{l.nearest ? 0 : 4 * total}}, wide, input.device());
  const Tensor starts = empty_tensor({{none + 1}}, l.wide ? DType::int64 : DType::int32, input.device());
  l.keys = keys.input(), l.weights = weights.impl()->data(), l.starts = starts.data_ptr();
  l.input_grad = r.impl()->data();
  run_grid_sample_keys(l);
  keys.sort();
  l.keys = const_cast<void*>(keys.keys()), l.order = keys.order();
  run_grid_sample_sums(l);
  return r;
}

TensorPair grid_sampler_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                        int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                        bool of_input, bool of_grid) {
  const GridSampling s =
      check_grid_sampler_2d_backward(grad, input, grid, interpolation_mode, padding_mode, align_corners);
  const OperandDevice device(input);
  Tensor of_x, of_places;
  if (grad.numel() == 0) {
    if (of_input) of_x = filled_with_zeros(input.sizes(), input, device.stream());
    if (of_grid) of_places = filled_with_zeros(grid.sizes(), grid, device.stream());
    return {of_x, of_places};
  }
  GridOperands operands("_grid_sampler_2d_backward", s, input, grid, device.stream());
  GridSampleLaunch& l = operands.launch;
  const Tensor g = contiguous_values(grad);
  l.grad = g.impl()->data();
  if (of_input) of_x = input_gradient(l, input);
  if (of_grid && s.nearest) of_places = filled_with_zeros(grid.sizes(), grid, device.stream());
  else if (of_grid) {
    of_places = empty_tensor(grid.sizes(), grid.dtype(), grid.device());
    l.grid_grad = of_places.impl()->data();
    run_grid_sample_slopes(l);
  }
  return {of_x, of_places};
}

}  // namespace

void register_grid_sample() {
  ops::_grid_sampler_2d.set_kernel(DeviceType::cuda, grid_sampler_kernel);
  ops::_grid_sampler_2d_backward.set_kernel(DeviceType::cuda, grid_sampler_backward_kernel);
}

}  // namespace vesta::cuda
