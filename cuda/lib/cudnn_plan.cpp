// The plan of a convolution with channels last: sizes and strides in cuDNN's terms. It knows no device and no tensor.
#include <vesta/cuda/lib/cudnn_conv.h>

namespace vesta::cuda {
namespace {

using Numbers = std::vector<int64_t>;

/// The numbers of a window's dimensions as cuDNN takes them: of images and volumes.
struct Shape {
  size_t first;  // of Spatial: lines are images of one row
  explicit Shape(const Window& w) : first(w.dims == 3 ? 0 : 1) {}

  Numbers numbers(const Spatial& v) const { return {v.begin() + first, v.end()}; }
  Numbers sizes(int64_t batch, int64_t channels, const Spatial& plane) const {
    Numbers n = {batch, channels};
    n.insert(n.end(), plane.begin() + first, plane.end());
    return n;
  }
  Numbers channels_last(int64_t channels, const Spatial& plane) const {
    Numbers n(size_t(2 + plane.size() - first), 1);
    int64_t step = channels;
    for (size_t d = plane.size(); d-- > first; step *= plane[d]) n[2 + d - first] = step;
    n[0] = step;
    return n;
  }
};

}  // namespace

cudnn::Plan plan_convolution(cudnn::Direction direction, const ConvDesc& d, const cudnn::Target& target,
                             const cudnn::Choice& choice) {
  if (!is_float(d.dtype)) throw cudnn::Refused("convolutions are of floats");
  const Window& v = d.window;
  const int64_t depth = d.channels / d.groups;
  cudnn::Graph g;
  const Shape shape(v);
  const Numbers sizes = shape.sizes(d.batch, d.outputs, v.out), strides = shape.channels_last(d.outputs, v.out);
  const int x = g.tensor(1, shape.sizes(d.batch, d.channels, v.in), shape.channels_last(d.channels, v.in), d.dtype);
  const int w = g.tensor(2, shape.sizes(d.outputs, depth, v.kernel), shape.channels_last(depth, v.kernel), d.dtype);
  const int y = g.tensor(3, sizes, strides, d.dtype);
  const bool more = d.bias || d.residual || d.relu, wide = d.dtype == DType::float64;
  if (more && (wide || direction != cudnn::Direction::forward))
    throw cudnn::Refused("more than a convolution is of float32 and less, forward");
  const auto between = [&](DType dtype) { return g.between(sizes, strides, dtype); };
  int sum = more ? between(DType::float32) : y;
  g.convolution(direction, x, w, sum,
                {shape.numbers(v.padding), shape.numbers(v.stride), shape.numbers(v.dilation), wide});
  if (d.residual)
    sum = g.pointwise(cudnn::pointwise_add, sum, g.tensor(5, sizes, strides, d.dtype),
                      d.bias || d.relu ? between(DType::float32) : y);
  if (d.bias) {
    const Spatial one{1, 1, 1};
    const int b = g.tensor(4, shape.sizes(1, d.outputs, one), shape.channels_last(d.outputs, one), d.dtype);
    sum = g.pointwise(cudnn::pointwise_add, sum, b, d.relu ? between(DType::float32) : y);
  }
  if (d.relu) g.pointwise(cudnn::pointwise_relu, sum, y);
  return g.build(target, choice);
}

}  // namespace vesta::cuda
