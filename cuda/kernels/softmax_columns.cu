// Softmax and log-softmax down columns that lie side by side, their gradients and logsumexp's: nothing is transposed.
// The sums are found in one pass, so the input is read twice, the second time mostly from L2.
#include <vesta/cuda/kernels/columns.cuh>
#include <vesta/cuda/kernels/softmax.h>

namespace vesta::cuda {
namespace {

template <class T, int N, bool log>
VESTA_KERNEL void softmax_columns_kernel(ColumnsArgs<T> a) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const ColumnPlace<T, N> place(a);
  ExpSum<C> s[N];
  exp_sums_of_columns(a, place, s);
  C by[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    by[j] = log ? math::log(s[j].sum) : C(1) / s[j].sum;  // a column of -inf gives NaN, as 0 / 0 does
    s[j].top = finite_top(s[j].top);
  }
  place.template each<false>(a, [&](const Pack* x, const Pack*, int count, int64_t row) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      C v[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const C below = convert<C>(x[k].v[j]) - s[j].top;
        v[j] = log ? below - by[j] : row_exp<T>(below) * by[j];
      }
      if (k < count) *reinterpret_cast<Pack*>(place.result(a, row, k)) = narrowed<T, N>(v);
    }
  });
}

/// gx = y (g - sum(g y)), or for log-softmax gx = g - exp(y) sum(g).
template <class T, int N, bool log>
VESTA_KERNEL void softmax_columns_backward_kernel(ColumnsArgs<T> a) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const ColumnPlace<T, N> place(a);
  C sum[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) sum[j] = C(0);
  place.template each<true>(a, [&](const Pack* y, const Pack* g, int count, int64_t) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const C slope = convert<C>(g[k].v[j]);
        if (k < count) sum[j] = sum[j] + (log ? slope : slope * convert<C>(y[k].v[j]));
      }
    }
  });
  combine_lanes(sum, a.width, place.lanes, [](C p, C q) { return p + q; });
  place.template each<true>(a, [&](const Pack* y, const Pack* g, int count, int64_t row) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      C v[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const C slope = convert<C>(g[k].v[j]), result = convert<C>(y[k].v[j]);
        v[j] = log ? slope - row_exp<T>(result) * sum[j] : result * (slope - sum[j]);
      }
      if (k < count) *reinterpret_cast<Pack*>(place.result(a, row, k)) = narrowed<T, N>(v);
    }
  });
}

/// The formula of logsumexp_backward.cu, with a column's result and gradient.
template <class T, int N>
VESTA_KERNEL void logsumexp_columns_backward_kernel(ColumnsArgs<T> a, const T* results) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const ColumnPlace<T, N> place(a);
  const int64_t from = place.exists ? place.pack * N : 0;
  C result[N], factor[N], sum[N];
  widen(*reinterpret_cast<const Pack*>(results + from), result);
  widen(*reinterpret_cast<const Pack*>(a.grad + from), factor);
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) sum[j] = C(0);
  place.template each<false>(a, [&](const Pack* x, const Pack*, int count, int64_t) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        if (k < count) sum[j] = sum[j] + row_exp<T>(convert<C>(x[k].v[j]) - result[j]);
      }
    }
  });
  combine_lanes(sum, a.width, place.lanes, [](C p, C q) { return p + q; });
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) factor[j] = result[j] - result[j] == C(0) ? factor[j] / sum[j] : factor[j];
  place.template each<false>(a, [&](const Pack* x, const Pack*, int count, int64_t row) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      C v[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = factor[j] * row_exp<T>(convert<C>(x[k].v[j]) - result[j]);
      if (k < count) *reinterpret_cast<Pack*>(place.result(a, row, k)) = narrowed<T, N>(v);
    }
  });
}

template <class T, int N>
void run_slopes(const LogsumexpGradient& l, int64_t inner) {
  ColumnsArgs<T> a{};
  a.x = reinterpret_cast<const T*>(l.x), a.grad = reinterpret_cast<const T*>(l.grad), a.y = reinterpret_cast<T*>(l.out);
  const LaunchShape shape = a.set(l.rows, l.n, inner, N, false, l.stream);
  launch_block("_logsumexp_backward", logsumexp_columns_backward_kernel<T, N>, shape, a,
               reinterpret_cast<const T*>(l.result));
}

template <class T, int N>
void run(const SoftmaxLaunch& l, int64_t inner) {
  ColumnsArgs<T> a{};
  a.x = reinterpret_cast<const T*>(l.x), a.grad = reinterpret_cast<const T*>(l.grad), a.y = reinterpret_cast<T*>(l.y);
  const LaunchShape shape = a.set(l.rows, l.n, inner, N, false, l.stream);
  auto launch = [&]<bool log>() {
    if (l.grad) launch_block(l.name, softmax_columns_backward_kernel<T, N, log>, shape, a);
    else launch_block(l.name, softmax_columns_kernel<T, N, log>, shape, a);
  };
  if (l.log) launch.template operator()<true>();
  else launch.template operator()<false>();
}

}  // namespace

void softmax_columns(const SoftmaxLaunch& l, int64_t inner) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    constexpr int N = sizeof(T) < 8 ? 16 / int(sizeof(T)) : 1;
    if (l.packed) run<T, N>(l, inner);
    else run<T, 1>(l, inner);
  });
}

void logsumexp_columns_backward(const LogsumexpGradient& l, int64_t inner) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    constexpr int N = sizeof(T) < 8 ? 16 / int(sizeof(T)) : 1;
    if (l.packed) run_slopes<T, N>(l, inner);
    else run_slopes<T, 1>(l, inner);
  });
}

}  // namespace vesta::cuda
