// Softmax and log-softmax over rows, and their gradients. A row in registers is gone over for its maximum, its sum and
// its result. Of a longer one the sum of exponentials is found in one pass (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018), so that a row too long to keep is read twice and not three times.
#include <vesta/cuda/kernels/rows.cuh>
#include <vesta/cuda/kernels/softmax.h>

namespace vesta::cuda {
namespace {

template <class T>
struct SoftmaxArgs {
  const T *x, *grad;
  T* y;
  int64_t rows, n;
  unsigned width;
  bool log, packed;
};

template <class T, class Row, class Team>
VESTA_KERNEL void softmax_kernel(SoftmaxArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  const C rest = C(-INFINITY);
  Row held(team, a.x + at, n, a.packed, rest, exists);
  if constexpr (Row::keeps_changes) {  // one exp for each element
    C top = rest, sum = 0;
    held.each(team, a.x + at, n, a.packed, rest, [&](int64_t, const C* v) {
      top = math::maximum(top, math::maximum(math::maximum(v[0], v[1]), math::maximum(v[2], v[3])));
    });
    top = finite_top(team.reduce(top, [](C p, C q) { return math::maximum(p, q); }));
    held.each(team, a.x + at, n, a.packed, rest, [&](int64_t, C* v) {
      C e[kPack];
      VESTA_UNROLL
      for (int j = 0; j < kPack; ++j) v[j] = v[j] - top, e[j] = math::exp(v[j]), v[j] = a.log ? v[j] : e[j];
      sum = sum + ((e[0] + e[1]) + (e[2] + e[3]));
    });
    sum = team.reduce(sum, [](C p, C q) { return p + q; });
    const C scale = C(1) / sum, less = a.log ? math::log(sum) : C(0);  // a row of -inf gives NaN, as 0 / 0 does
    held.each(team, a.x + at, n, a.packed, rest, [&](int64_t c, C* v) {
      VESTA_UNROLL
      for (int j = 0; j < kPack; ++j) v[j] = a.log ? v[j] - less : v[j] * scale;
      store_columns(a.y + at, c, n, a.packed, v);
    });
    return;
  }
  const ExpSum<C> s = row_exp_sum(held, team, a.x + at, n, a.packed);
  // a row of -inf gives NaN, as the quotient 0 / 0 does
  const C shift = finite_top(s.top), scale = C(1) / s.sum, less = a.log ? math::log(s.sum) : C(0);
  held.each(team, a.x + at, n, a.packed, rest, [&](int64_t c, C* v) {
    VESTA_UNROLL
    for (int j = 0; j < kPack; ++j) v[j] = a.log ? v[j] - shift - less : math::exp(v[j] - shift) * scale;
    store_columns(a.y + at, c, n, a.packed, v);
  });
}

/// gx = y (g - sum(g y)), or for log-softmax gx = g - exp(y) sum(g). The row of g is kept, y is read where it is
/// needed.
template <class T, class Row, class Team>
VESTA_KERNEL void softmax_gradient_kernel(SoftmaxArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  Row held(team, a.grad + at, n, a.packed, C(0), exists);
  C sum = 0;
  held.each(team, a.grad + at, n, a.packed, C(0), [&](int64_t c, const C* g) {
    if (a.log) {
      sum = sum + ((g[0] + g[1]) + (g[2] + g[3]));
    } else {
      C y[kPack];
      load_columns(a.x + at, c, n, a.packed, C(0), y);
      sum = sum + ((g[0] * y[0] + g[1] * y[1]) + (g[2] * y[2] + g[3] * y[3]));
    }
  });
  sum = team.reduce(sum, [](C p, C q) { return p + q; });
  held.each(team, a.grad + at, n, a.packed, C(0), [&](int64_t c, C* g) {
    C y[kPack];
    load_columns(a.x + at, c, n, a.packed, C(0), y);
    VESTA_UNROLL
    for (int j = 0; j < kPack; ++j) g[j] = a.log ? g[j] - math::exp(y[j]) * sum : y[j] * (g[j] - sum);
    store_columns(a.y + at, c, n, a.packed, g);
  });
}

}  // namespace

void softmax(const SoftmaxLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    with_rows<T>(uint64_t(l.rows), l.n, l.stream, [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
      const SoftmaxArgs<T> a{reinterpret_cast<const T*>(l.x),
                             reinterpret_cast<const T*>(l.grad),
                             reinterpret_cast<T*>(l.y),
                             l.rows,
                             l.n,
                             width,
                             l.log,
                             l.packed};
      if (l.grad) launch_block(l.name, softmax_gradient_kernel<T, Row, Team>, shape, a);
      else launch_block(l.name, softmax_kernel<T, Row, Team>, shape, a);
    });
  });
}

}  // namespace vesta::cuda
