// The gradient of logsumexp over rows. A result is rounded, which puts one factor on all of exp(x - result): they are
// divided by their sum, which should be 1. Where the result is infinite or NaN, so is the slope, and nothing is
// divided.
#include <vesta/cuda/kernels/rows.cuh>
#include <vesta/cuda/kernels/softmax.h>

namespace vesta::cuda {
namespace {

template <class T>
struct SlopeArgs {
  const T *x, *grad, *result;
  T* out;
  int64_t rows, n;
  unsigned width;
};

template <class T, class Row, class Team>
VESTA_KERNEL void logsumexp_backward_kernel(SlopeArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t row = exists ? int64_t(team.row) : 0, n = exists ? a.n : 0;
  const T* x = a.x + row * a.n;
  T* out = a.out + row * a.n;
  const C result = convert<C>(a.result[row]), g = convert<C>(a.grad[row]), rest = C(-INFINITY);
  Row held(team, x, n, rest, exists);
  C sum = 0;
  held.each(team, x, n, rest, [&](auto, C* v) {
    C e[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) e[j] = row_exp<T>(v[j] - result);
    sum = sum + pack_sum<N>(e);
    if constexpr (Row::keeps_changes) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = e[j];
    }
  });
  sum = team.reduce(sum, [](C p, C q) { return p + q; });
  const C factor = result - result == C(0) ? g / sum : g;
  held.each(team, x, n, rest, [&](auto c, C* v) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = factor * (Row::keeps_changes ? v[j] : row_exp<T>(v[j] - result));
    store_pack<Row::packed>(out, c, n, v);
  });
}

}  // namespace

void logsumexp_backward(const LogsumexpGradient& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    with_rows<T, RowKernels::few>(uint64_t(l.rows), l.n, l.packed, l.stream,
                                  [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
                                    const SlopeArgs<T> a{reinterpret_cast<const T*>(l.x),
                                                         reinterpret_cast<const T*>(l.grad),
                                                         reinterpret_cast<const T*>(l.result),
                                                         reinterpret_cast<T*>(l.out),
                                                         l.rows,
                                                         l.n,
                                                         width};
                                    launch_block("_logsumexp_backward", logsumexp_backward_kernel<T, Row, Team>, shape,
                                                 a);
                                  });
  });
}

}  // namespace vesta::cuda
