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
};

template <class T, class Row, class Team, bool log>
VESTA_KERNEL void softmax_kernel(SoftmaxArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  const C rest = C(-INFINITY);
  Row held(team, a.x + at, n, rest, exists);
  if constexpr (Row::keeps_changes) {  // one exp for each element
    C top = rest, sum = 0;
    held.each(team, a.x + at, n, rest, [&](int, const C* v) { top = extremum(top, pack_extremum<N>(v)); });
    top = finite_top(team.reduce(top, [](C p, C q) { return extremum(p, q); }));
    held.each(team, a.x + at, n, rest, [&](int, C* v) {
      C e[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = v[j] - top, e[j] = row_exp<T>(v[j]);
      sum = sum + pack_sum<N>(e);
      if constexpr (!log) {
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) v[j] = e[j];
      }
    });
    sum = team.reduce(sum, [](C p, C q) { return p + q; });
    const C by = log ? math::log(sum) : C(1) / sum;  // a row of -inf gives NaN, as 0 / 0 does
    held.each(team, a.x + at, n, rest, [&](int c, C* v) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = log ? v[j] - by : v[j] * by;
      store_pack<Row::packed>(a.y + at, c, n, v);
    });
  } else {
    const ExpSum<C> s = row_exp_sum(held, team, a.x + at, n);
    const C shift = finite_top(s.top), by = log ? math::log(s.sum) : C(1) / s.sum;
    held.each(team, a.x + at, n, rest, [&](int64_t c, C* v) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = log ? v[j] - shift - by : row_exp<T>(v[j] - shift) * by;
      store_pack<Row::packed>(a.y + at, c, n, v);
    });
  }
}

/// gx = y (g - sum(g y)), or for log-softmax gx = g - exp(y) sum(g). The row of g is kept, and that of y where it fits
/// into registers, else it is read where it is needed.
template <class T, class Row, class Team, bool log>
VESTA_KERNEL void softmax_backward_kernel(SoftmaxArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  Row held(team, a.grad + at, n, C(0), exists);
  typename Row::Second result(team, a.x + at, n, C(0), exists);
  C sum = 0;
  held.each_of_two(team, result, a.grad + at, n, C(0), [&](auto, const C* g, const C* y) {
    C product[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) product[j] = log ? g[j] : g[j] * y[j];
    sum = sum + pack_sum<N>(product);
  });
  sum = team.reduce(sum, [](C p, C q) { return p + q; });
  held.each_of_two(team, result, a.grad + at, n, C(0), [&](auto c, C* g, const C* y) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) g[j] = log ? g[j] - row_exp<T>(y[j]) * sum : y[j] * (g[j] - sum);
    store_pack<Row::packed>(a.y + at, c, n, g);
  });
}

}  // namespace

void softmax(const SoftmaxLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    with_rows<T>(uint64_t(l.rows), l.n, l.packed, l.stream,
                 [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
                   const SoftmaxArgs<T> a{reinterpret_cast<const T*>(l.x),
                                          reinterpret_cast<const T*>(l.grad),
                                          reinterpret_cast<T*>(l.y),
                                          l.rows,
                                          l.n,
                                          width};
                   auto launch = [&]<bool log>() {
                     if (l.grad) launch_block(l.name, softmax_backward_kernel<T, Row, Team, log>, shape, a);
                     else launch_block(l.name, softmax_kernel<T, Row, Team, log>, shape, a);
                   };
                   if (l.log) launch.template operator()<true>();
                   else launch.template operator()<false>();
                 });
  });
}

}  // namespace vesta::cuda
