// Distances between points, and products of vectors.
#include <vesta/core/ops/distance.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/distance_kernels.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/view.h>

namespace vesta::cpu {
namespace {

/// Computes a b - c d as ops on tensors do: each product rounded to the dtype, integers modulo their range.
template <class T>
T difference_of_products(T a, T b, T c, T d) {
  if constexpr (is_complex(dtype_of<T>)) {
    const auto product = [](T x, T y) {
      return T(x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real());
    };
    return product(a, b) - product(c, d);
  } else if constexpr (std::is_integral_v<T>) {
    return T(uint64_t(a) * uint64_t(b) - uint64_t(c) * uint64_t(d));
  } else if constexpr (sizeof(T) < 4) {
    return T(float(T(float(a) * float(b))) - float(T(float(c) * float(d))));
  } else {
    return a * b - c * d;
  }
}

/// Returns an operand in a dtype and a shape, dense.
Tensor dense_operand(const Tensor& x, IntSpan shape, DType dtype) {
  if (x.dtype() == dtype && x.is_contiguous() && std::ranges::equal(x.sizes(), shape)) return x;
  Tensor r = empty_tensor(shape, dtype, x.device());
  copy_values(r, x);
  return r;
}

Tensor cross_kernel(const Tensor& input, const Tensor& other, int64_t dim) {
  const int64_t d = check_cross(input, other, dim);
  const DType dtype = promote(input.dtype(), other.dtype());
  const Dims shape = broadcast_shapes(input.sizes(), other.sizes(), "linalg.cross");
  Tensor r = result_tensor(shape, dtype);
  if (!r.numel()) return r;
  const Tensor a = dense_operand(input, shape, dtype), b = dense_operand(other, shape, dtype);
  int64_t inner = 1;
  for (size_t k = size_t(d) + 1; k < shape.size(); ++k) inner *= shape[k];
  visit<kNumbers>(dtype, [&]<class T>() {
    const T *x = elements<T>(a), *y = elements<T>(b);
    T* to = elements<T>(r);
    parallel_for(r.numel() / 3, kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = inner == 1 ? 3 * i : i / inner * 3 * inner + i % inner;
        const T x0 = x[at], x1 = x[at + inner], x2 = x[at + 2 * inner];
        const T y0 = y[at], y1 = y[at + inner], y2 = y[at + 2 * inner];
        to[at] = difference_of_products(x1, y2, x2, y1);
        to[at + inner] = difference_of_products(x2, y0, x0, y2);
        to[at + 2 * inner] = difference_of_products(x0, y1, x1, y0);
      }
    });
  });
  return r;
}

// ---- distances ----

DistanceTable distance_table;

const DistanceKernels& distance_kernels(DType dtype, double p) {
  const DistanceKernels* const of = dtype == DType::float64 ? distance_table.of_double : distance_table.of_float;
  if (p == 0) return of[DistanceTable::zero];
  if (p == 1) return of[DistanceTable::one];
  if (p == 2) return of[DistanceTable::two];
  return of[p == std::numeric_limits<double>::infinity() ? DistanceTable::infinity : DistanceTable::other];
}

/// Returns the shape of points [*, count, columns] with the batches of distances [*, P, R].
Dims points_shape(IntSpan distances, int64_t count, int64_t columns) {
  Dims shape(distances);
  shape[shape.size() - 2] = count, shape.back() = columns;
  return shape;
}

/// Batches of points, dense, in float or double.
struct Points {
  Tensor values;
  int64_t count, columns;
  const char* at(int64_t batch, int64_t i) const {
    return values.impl()->data() + (batch * count + i) * columns * itemsize(values.dtype());
  }
};
Points dense_points(const Tensor& x, IntSpan shape, DType dtype) {
  return {dense_operand(x, shape, dtype), shape[shape.size() - 2], shape.back()};
}

/// Returns the points as panels [batches, panels, columns, lanes].
Tensor panels_of(const Points& x, int64_t batches, int64_t lanes) {
  const int64_t panels = (x.count + lanes - 1) / lanes, item = itemsize(x.values.dtype());
  Tensor r = empty_tensor(Dims{batches, panels, x.columns, lanes}, x.values.dtype());
  const int64_t size = lanes * x.columns;
  parallel_for(batches * panels, std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, size)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i % panels * lanes, count = std::min(lanes, x.count - first);
                   char* const to = r.impl()->data() + i * size * item;
                   if (count < lanes) std::memset(to, 0, size_t(size * item));
                   Transposition t;
                   t.from = x.at(i / panels, first), t.from_row = x.columns * item, t.rows = count;
                   t.to = to, t.to_row = lanes * item, t.columns = x.columns, t.item = item;
                   transpose_matrix(t);
                 }
               });
  return r;
}

/// Where the distance of point i of the rows to point j of the panels goes: into a matrix, or into the upper triangle
/// of one, whose rows lie one behind the other. That is row(b, i) + j * step.
struct DistancePlaces {
  int64_t row_step, step, batch;  // of a matrix
  int64_t triangle = 0;  // points of which every two have a distance
  int64_t row(int64_t b, int64_t i) const {
    return triangle ? i * (2 * triangle - i - 3) / 2 - 1 : b * batch + i * row_step;
  }
};

/// Computes the distances of points in rows to points in panels.
template <class T>
void fill_distances(const Points& rows, const Points& other, int64_t batches, double p, const DistancePlaces& place,
                    T* out) {
  const DistanceKernels& k = distance_kernels(dtype_of<T>, p);
  const int64_t lanes = k.lanes, panels = (other.count + lanes - 1) / lanes, columns = rows.columns;
  const Tensor packed = panels_of(other, batches, lanes);
  constexpr int64_t kBlock = 32;  // rows that pass a panel at a time
  const int64_t blocks = (rows.count + kBlock - 1) / kBlock, work = kBlock * lanes * std::max<int64_t>(1, columns);
  parallel_for(batches * panels * blocks, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
    alignas(64) T tile[kDistanceRows * 64];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t panel = task / blocks % panels, b = task / blocks / panels, first = panel * lanes;
      const int64_t last = std::min(other.count, first + lanes), start = task % blocks * kBlock;
      const T* const at = elements<T>(packed) + task / blocks * lanes * columns;
      // of a triangle, the rows in front of the panel's last point
      const int64_t stop = std::min(place.triangle ? last - 1 : rows.count, std::min(rows.count, start + kBlock));
      for (int64_t i = start; i < stop;) {
        const int64_t count = stop - i >= kDistanceRows ? kDistanceRows : 1;
        const void* x[kDistanceRows];
        for (int64_t r = 0; r < count; ++r) x[r] = rows.at(b, i + r);
        (count == 1 ? k.one : k.rows)(x, at, columns, p, tile);
        for (int64_t r = 0; r < count; ++r, ++i) {
          const int64_t begin_j = place.triangle ? std::max(first, i + 1) : first;
          const T* const from = tile + r * lanes + begin_j - first;
          T* const to = out + place.row(b, i) + begin_j * place.step;
          if (place.step == 1) std::copy_n(from, last - begin_j, to);
          else
            for (int64_t j = 0; j < last - begin_j; ++j) to[j * place.step] = from[j];
        }
      }
    }
  });
}

/// Returns a result computed in a wider dtype in its own.
Tensor narrowed_result(const Tensor& wide, DType dtype) {
  if (wide.dtype() == dtype) return wide;
  Tensor r = empty_tensor(wide.sizes(), dtype);
  copy_values(r, wide);
  return r;
}

Tensor distances_kernel(const Tensor& x1, MaybeTensor x2, double p) {
  const Dims shape = check_distances(x1, x2, p);
  const Tensor& other = x2.defined() ? *x2 : x1;
  const DType dtype = promote(x1.dtype(), other.dtype()), wide = compute_type(dtype);
  const int64_t n = x1.size(-2), m = other.size(-2), columns = x1.size(-1);
  Tensor r = empty_tensor(shape, wide);
  if (!r.numel()) return narrowed_result(r, dtype);
  const Points a = dense_points(x1, x2.defined() ? points_shape(shape, n, columns) : Dims(x1.sizes()), wide);
  const Points b = x2.defined() ? dense_points(other, points_shape(shape, m, columns), wide) : a;
  const int64_t batches = x2.defined() ? r.numel() / (n * m) : 1;
  visit<set_of(DType::float32) | set_of(DType::float64)>(wide, [&]<class T>() {
    T* const out = elements<T>(r);
    if (!x2.defined()) fill_distances<T>(a, a, 1, p, {0, 1, 0, n}, out);
    else if (m >= n) fill_distances<T>(a, b, batches, p, {m, 1, n * m}, out);
    else fill_distances<T>(b, a, batches, p, {1, m, n * m}, out);  // the more points fill the panels
  });
  return narrowed_result(r, dtype);
}

/// Returns the symmetric matrix [n, n] whose upper triangle holds t, with zeros on the diagonal.
template <class T>
Tensor symmetric_matrix(const Tensor& t, int64_t n) {
  Tensor r = empty_tensor(Dims{n, n}, t.dtype());
  const T* from = elements<T>(t);
  T* const to = elements<T>(r);
  for (int64_t i = 0; i < n; ++i) {
    to[i * n + i] = T(0);
    for (int64_t j = i + 1; j < n; ++j) to[i * n + j] = to[j * n + i] = *from++;
  }
  return r;
}

Tensor distances_backward_kernel(const Tensor& grad, const Tensor& x1, MaybeTensor x2, double p,
                                 const Tensor& distances) {
  check_distances_backward(grad, x1, x2, p, distances);
  const Tensor& other = x2.defined() ? *x2 : x1;
  const DType dtype = promote(x1.dtype(), other.dtype()), wide = compute_type(dtype);
  const int64_t n = x1.size(-2), m = other.size(-2), columns = x1.size(-1);
  const Dims shape = x2.defined() ? points_shape(grad.sizes(), n, columns) : Dims(x1.sizes());
  const Tensor r = empty_tensor(shape, wide);
  if (!r.numel()) return narrowed_result(r, dtype);
  const DistanceKernels& k = distance_kernels(wide, p);
  if (!k.gradient || distances.numel() == 0) {
    fill_values(r, Scalar(0.0), "cdist");
    return narrowed_result(r, dtype);
  }
  // Distances that were rounded to 16 bits do not tell which coordinates are as far apart.
  const Tensor sizes = wide == dtype  ? distances
                       : x2.defined() ? distances_kernel(x1.to(wide), x2->to(wide), p)
                                      : distances_kernel(x1.to(wide), {}, p);
  Tensor g = dense_operand(grad, grad.sizes(), wide), d = dense_operand(sizes, sizes.sizes(), wide);
  if (!x2.defined()) {
    const auto matrix = [&](const Tensor& t) {
      return wide == DType::float64 ? symmetric_matrix<double>(t, n) : symmetric_matrix<float>(t, n);
    };
    g = matrix(g), d = matrix(d);
  }
  const Points a = dense_points(x1, shape, wide);
  const Points b = x2.defined() ? dense_points(other, points_shape(grad.sizes(), m, columns), wide) : a;
  const int64_t item = itemsize(wide), batches = r.numel() / (n * columns);
  const int64_t blocks = (n + kDistanceRows - 1) / kDistanceRows;
  const int64_t strips = (columns + kDistanceColumns - 1) / kDistanceColumns;
  const int64_t work = kDistanceRows * std::min(columns, kDistanceColumns) * m;
  parallel_for(batches * blocks * strips, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t column = task % strips * kDistanceColumns, batch = task / strips / blocks;
      const int64_t first = task / strips % blocks * kDistanceRows;
      DistanceGradient t;
      t.rows = int(std::min(kDistanceRows, n - first));
      for (int64_t q = 0; q < kDistanceRows; ++q) {
        const int64_t i = first + std::min<int64_t>(q, t.rows - 1), at = (batch * n + i) * m * item;
        t.x1[q] = a.at(batch, i) + column * item;
        t.grad[q] = g.impl()->data() + at, t.distances[q] = d.impl()->data() + at;
        t.out[q] = r.impl()->data() + ((batch * n + i) * columns + column) * item;
      }
      t.x2 = b.at(batch, 0) + column * item, t.x2_step = columns;
      t.points = m, t.columns = std::min(kDistanceColumns, columns - column), t.p = p;
      k.gradient(t);
    }
  });
  return narrowed_result(r, dtype);
}

}  // namespace

void register_distance() {
  VESTA_ON_ISA(register_distance_kernels, distance_table);
  ops::linalg_cross.set_kernel(DeviceType::cpu, cross_kernel);
  ops::_distances.set_kernel(DeviceType::cpu, distances_kernel);
  ops::_distances_backward.set_kernel(DeviceType::cpu, distances_backward_kernel);
}

}  // namespace vesta::cpu
