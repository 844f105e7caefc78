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
  g.convolution(direction, x, w, y,
                {numbers(v.padding), numbers(v.stride), numbers(v.dilation), d.dtype == DType::float64});
  return g.build(target, choice);
}

}  // namespace vesta::cuda
