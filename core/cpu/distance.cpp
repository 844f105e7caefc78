// Products of vectors.
#include <vesta/core/ops/distance.h>

#include <algorithm>
#include <complex>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
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
    const T *x = a.data_ptr<T>(), *y = b.data_ptr<T>();
    T* to = r.data_ptr<T>();
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

}  // namespace

void register_distance() { ops::linalg_cross.set_kernel(DeviceType::cpu, cross_kernel); }

}  // namespace vesta::cpu
