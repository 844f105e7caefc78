// Distances between points and their gradient, in float or double: 16-bit floats are converted, as on the CPU; and
// cross products.
#include <vesta/core/ops/distance.h>

#include <algorithm>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/kernels/distance.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Returns an operand in a dtype and a shape, contiguous.
Tensor dense_operand(const Tensor& x, IntSpan shape, DType dtype) {
  if (x.dtype() == dtype && x.is_contiguous() && std::ranges::equal(x.sizes(), shape)) return x;
  Tensor r = empty_tensor(shape, dtype, x.device());
  copy_values(r, x);
  return r;
}
Tensor in_dtype(const Tensor& x, DType dtype) { return dense_operand(x, x.sizes(), dtype); }

/// Returns the shape of points [*, count, columns] with the batches of distances [*, P, R].
Dims points_shape(IntSpan distances, int64_t count, int64_t columns) {
  Dims shape(distances);
  shape[shape.size() - 2] = count, shape.back() = columns;
  return shape;
}

/// The operands of a launch, kept while it is queued.
struct Points {
  Tensor x1, x2;
  DistanceLaunch launch;
};

/// Returns points with the batches of distances of a shape, in float or double.
Points points_of(const Tensor& x1, MaybeTensor x2, double p, IntSpan shape, DType wide, StreamHandle stream) {
  Points r;
  DistanceLaunch& l = r.launch;
  l.dtype = wide, l.stream = stream, l.p = p, l.pairs = !x2.defined();
  l.n = l.m = x1.size(-2), l.columns = x1.size(-1);
  if (l.pairs) {
    r.x1 = r.x2 = in_dtype(x1, wide);
  } else {
    l.m = x2->size(-2);
    r.x1 = dense_operand(x1, points_shape(shape, l.n, l.columns), wide);
    r.x2 = x2->is_same(x1) ? r.x1 : dense_operand(*x2, points_shape(shape, l.m, l.columns), wide);
    for (size_t d = 0; d + 2 < shape.size(); ++d) l.batches *= shape[d];
  }
  l.x1 = r.x1.impl()->data(), l.x2 = r.x2.impl()->data();
  return r;
}

DType common_dtype(const Tensor& x1, MaybeTensor x2) {
  return x2.defined() ? promote(x1.dtype(), x2->dtype()) : x1.dtype();
}

Tensor distances(const Tensor& x1, MaybeTensor x2, double p) {
  const Dims shape = check_distances(x1, x2, p);
  OperandDevice device(x1);
  const DType dtype = common_dtype(x1, x2), wide = compute_type(dtype);
  const Tensor r = empty_tensor(shape, wide, x1.device());
  if (r.numel()) {
    Points points = points_of(x1, x2, p, shape, wide, device.stream());
    points.launch.out = r.impl()->data();
    run_distances(points.launch);
  }
  return in_dtype(r, dtype);
}

/// The numbers of each pair of points, in the strides they have if those of the batches are one.
struct Numbers {
  Tensor kept;
  DistanceNumbers numbers;
  Numbers(const Tensor& t, DType dtype, bool pairs) : kept(t) {
    bool even = t.dtype() == dtype && (!pairs || t.is_contiguous());
    for (int64_t d = 0; d + 3 < t.dim(); ++d) even = even && t.stride(d) == t.size(d + 1) * t.stride(d + 1);
    if (!even) kept = t.dtype() == dtype ? contiguous_values(t) : in_dtype(t, dtype);
    numbers.data = kept.impl()->data();
    if (pairs) return;
    numbers.row = kept.stride(-2), numbers.column = kept.stride(-1);
    if (kept.dim() > 2) numbers.batch = kept.stride(-3);
  }
};

Tensor distances_backward(const Tensor& grad, const Tensor& x1, MaybeTensor x2, double p, const Tensor& distances) {
  check_distances_backward(grad, x1, x2, p, distances);
  OperandDevice device(x1);
  const DType dtype = common_dtype(x1, x2), wide = compute_type(dtype);
  const Dims shape = x2.defined() ? points_shape(grad.sizes(), x1.size(-2), x1.size(-1)) : Dims(x1.sizes());
  if (p == 0 || grad.numel() == 0 || x1.numel() == 0) return zeros(shape, dtype, x1.device());
  Points points = points_of(x1, x2, p, grad.sizes(), wide, device.stream());
  // Distances that were rounded to 16 bits do not tell which coordinates are as far apart.
  Tensor sizes = distances;
  if (wide != dtype) {
    sizes = empty_tensor(distances.sizes(), wide, x1.device());
    points.launch.out = sizes.impl()->data();
    run_distances(points.launch);
  }
  const Numbers g(grad, wide, !x2.defined()), d(sizes, wide, !x2.defined());
  const Tensor r = empty_tensor(shape, wide, x1.device());
  points.launch.out = r.impl()->data();
  run_distances_gradient(points.launch, g.numbers, d.numbers);
  return in_dtype(r, dtype);
}

Tensor cross(const Tensor& input, const Tensor& other, int64_t dim) {
  const int64_t d = check_cross(input, other, dim);
  check_one_device("linalg.cross", {&input, &other});
  OperandDevice device(input);
  const DType dtype = promote(input.dtype(), other.dtype());
  const Dims shape = broadcast_shapes(input.sizes(), other.sizes(), "linalg.cross");
  const Tensor r = result_tensor(shape, dtype, input.device());
  if (!r.numel()) return r;
  const Tensor a = dense_operand(input, shape, dtype), b = dense_operand(other, shape, dtype);
  int64_t inner = 1;
  for (size_t k = size_t(d) + 1; k < shape.size(); ++k) inner *= shape[k];
  run_cross(dtype, a.impl()->data(), b.impl()->data(), r.impl()->data(), r.numel() / 3, inner, device.stream());
  return r;
}

}  // namespace

void register_distance() {
  ops::linalg_cross.set_kernel(DeviceType::cuda, cross);
  ops::_distances.set_kernel(DeviceType::cuda, distances);
  ops::_distances_backward.set_kernel(DeviceType::cuda, distances_backward);
}

}  // namespace vesta::cuda
