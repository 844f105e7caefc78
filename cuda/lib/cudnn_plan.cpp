// The plan of a convolution with channels last: sizes and strides in cuDNN's terms. It knows no device and no tensor.
#include <vesta/cuda/lib/cudnn_conv.h>

namespace vesta::cuda {
namespace {

using Numbers = std::vector<int64_t>;

Numbers channels_last(int64_t channels, const Spatial& size) {
  return {channels * size[1] * size[2], 1, channels * size[2], channels};
}
Numbers numbers(const Spatial& v) { return {v[1], v[2]}; }

}  // namespace

cudnn::Plan plan_convolution(cudnn::Direction direction, const ConvDesc& d, const cudnn::Target& target,
                             const cudnn::Choice& choice) {
  if (!is_float(d.dtype)) throw cudnn::Refused("convolutions are of floats");
  const Window& v = d.window;
  const int64_t depth = d.channels / d.groups;
  cudnn::Graph g;
  const int x = g.tensor(1, {d.batch, d.channels, v.in[1], v.in[2]}, channels_last(d.channels, v.in), d.dtype);
  const int w = g.tensor(2, {d.outputs, depth, v.kernel[1], v.kernel[2]}, channels_last(depth, v.kernel), d.dtype);
  const int y = g.tensor(3, {d.batch, d.outputs, v.out[1], v.out[2]}, channels_last(d.outputs, v.out), d.dtype);
  const bool more = d.bias || d.residual || d.relu, wide = d.dtype == DType::float64;
  if (more && (wide || direction != cudnn::Direction::forward))
    throw cudnn::Refused("more than a convolution is of float32 and less, forward");
  const Numbers sizes = {d.batch, d.outputs, v.out[1], v.out[2]}, strides = channels_last(d.outputs, v.out);
  const auto between = [&](DType dtype) { return g.between(sizes, strides, dtype); };
  int sum = more ? between(DType::float32) : y;
  g.convolution(direction, x, w, sum, {numbers(v.padding), numbers(v.stride), numbers(v.dilation), wide});
  if (d.residual)
    sum = g.pointwise(cudnn::pointwise_add, sum, g.tensor(5, sizes, strides, d.dtype),
                      d.bias || d.relu ? between(DType::float32) : y);
  if (d.bias) {
    const int b = g.tensor(4, {1, d.outputs, 1, 1}, {d.outputs, 1, d.outputs, d.outputs}, d.dtype);
    sum = g.pointwise(cudnn::pointwise_add, sum, b, d.relu ? between(DType::float32) : y);
  }
  if (d.relu) g.pointwise(cudnn::pointwise_relu, sum, y);
  return g.build(target, choice);
}

}  // namespace vesta::cuda
