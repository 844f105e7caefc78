#include <vesta/cuda/kernels/matmul.h>

#include <vesta/cuda/kernels/product_tile.cuh>

namespace vesta::cuda {
namespace {

/// The batch of strided matrices in the form that product_kernel takes.
template <class T>
struct Matrices {
  using S = sum_of<T>;
  int64_t m, n, k, count;
  bool a_along_k, b_along_k;
  const T *first_a, *first_b, *bias;
  T* first_c;
  int64_t a_row, a_col, b_row, b_col;
  int ndim;
  int64_t sizes[kProductDims], a_step[kProductDims], b_step[kProductDims];

  struct One {
    const T *pa, *pb, *bias;
    T* pc;
    int64_t a_row, a_col, b_row, b_col, n;
    VESTA_HD S a(int64_t row, int64_t at) const { return widen(pa[row * a_row + at * a_col]); }
    VESTA_HD S b(int64_t at, int64_t column) const { return widen(pb[at * b_row + column * b_col]); }
    VESTA_HD void store(int64_t row, int64_t column, S sum) const {
      if (bias) sum = sum + widen(bias[column]);
      pc[row * n + column] = narrow(sum);
    }
    VESTA_HD static S widen(T v) {
      if constexpr (std::is_integral_v<T>) return static_cast<S>(v);
      else return convert<S>(v);
    }
    VESTA_HD static T narrow(S v) {
      if constexpr (std::is_integral_v<T>) return static_cast<T>(v);
      else return convert<T>(v);
    }
  };
  VESTA_HD One at(int64_t number) const {
    One p{first_a, first_b, bias, first_c + number * m * n, a_row, a_col, b_row, b_col, n};
    for (int d = ndim - 1; d >= 0; --d) {
      const int64_t next = number / sizes[d], i = number - next * sizes[d];
      p.pa += i * a_step[d], p.pb += i * b_step[d];
      number = next;
    }
    return p;
  }
};

int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

template <class T>
Matrices<T> matrices_of(const ProductLaunch& l) {
  Matrices<T> o;
  o.m = l.m, o.n = l.n, o.k = l.k, o.count = l.count;
  o.a_along_k = distance(l.a_col) <= distance(l.a_row), o.b_along_k = distance(l.b_row) < distance(l.b_col);
  o.first_a = static_cast<const T*>(l.a), o.first_b = static_cast<const T*>(l.b);
  o.bias = static_cast<const T*>(l.bias), o.first_c = static_cast<T*>(l.c);
  o.a_row = l.a_row, o.a_col = l.a_col, o.b_row = l.b_row, o.b_col = l.b_col;
  o.ndim = l.ndim;
  for (int d = 0; d < l.ndim; ++d) o.sizes[d] = l.sizes[d], o.a_step[d] = l.a_step[d], o.b_step[d] = l.b_step[d];
  return o;
}

VESTA_KERNEL void product_pointers_kernel(ProductPointers l) {
  const int64_t number = global_index();
  if (number >= l.count) return;
  const char *a = l.a, *b = l.b, *c = l.c;
  int64_t rest = number;
  for (int d = l.ndim - 1; d >= 0; --d) {
    const int64_t next = rest / l.sizes[d], i = rest - next * l.sizes[d];
    a += i * l.a_step[d], b += i * l.b_step[d], c += i * l.c_step[d];
    rest = next;
  }
  l.to[number] = a, l.to[l.count + number] = b, l.to[2 * l.count + number] = c;
}

}  // namespace

void run_product_pointers(const ProductPointers& l) {
  launch_independent("product_pointers", product_pointers_kernel, linear_shape(uint64_t(l.count), 256, l.stream), l);
}

void run_products(const ProductLaunch& l) {
  visit_device<kNumbers>(l.dtype, [&]<class T>() { run_product<sum_of<T>>(l.name, l.stream, matrices_of<T>(l)); });
}

}  // namespace vesta::cuda
