// Softmax and log-softmax down columns that lie side by side, and their gradients: nothing is transposed. A thread has
// 16 bytes of neighbouring columns and every `lanes`-th row of them. The sums are found in one pass (Milakov and
// Gimelshein 2018), so the input is read twice, the second time mostly from L2.
#include <vesta/cuda/kernels/rows.cuh>
#include <vesta/cuda/kernels/softmax.h>

namespace vesta::cuda {
namespace {

constexpr int kAhead = 4;         // rows that are in flight
constexpr int64_t kManyRows = 64;  // are shared by the lanes of a block
constexpr unsigned kLanes = 8;

template <class T>
struct ColumnsArgs {
  const T *x, *grad;
  T* y;
  Divider packs;         // of a row
  int64_t count, n;      // packs of columns in all, rows
  int64_t step;          // elements from row to row
  unsigned width;        // packs of a block; its threads by `width` are its lanes
};

/// Where a thread's columns begin, and whether they exist.
template <class T, int N>
struct Place {
  int64_t at;
  unsigned lane, lanes;
  bool exists;
  VESTA_DEVICE explicit Place(const ColumnsArgs<T>& a) {
    const unsigned column = threadIdx.x % a.width;
    lane = threadIdx.x / a.width, lanes = kTeamThreads / a.width;
    const int64_t pack = int64_t(blockIdx.x) * a.width + column;
    exists = pack < a.count;
    const int64_t outer = exists ? a.packs.divide(pack) : 0;
    at = outer * a.n * a.step + (exists ? pack - outer * a.packs.divisor : 0) * N;
  }
  /// Calls f(packs of x, of g, how many) for up to kAhead rows of this thread at a time; all are loaded first.
  template <bool both, class F>
  VESTA_DEVICE void each(const ColumnsArgs<T>& a, F f) const {
    using Pack = Elements<T, N>;
    VESTA_ROLLED
    for (int64_t row = lane; exists && row < a.n; row += int64_t(kAhead) * lanes) {
      Pack x[kAhead], g[kAhead];
      int count = 0;
      VESTA_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const int64_t r = row + int64_t(k) * lanes;
        if (r >= a.n) continue;
        x[k] = *reinterpret_cast<const Pack*>(a.x + at + r * a.step);
        if constexpr (both) g[k] = *reinterpret_cast<const Pack*>(a.grad + at + r * a.step);
        count = k + 1;
      }
      f(x, g, count, row);
    }
  }
  VESTA_DEVICE T* result(const ColumnsArgs<T>& a, int64_t row, int k) const {
    return a.y + at + (row + int64_t(k) * lanes) * a.step;
  }
};

/// Combines the lanes' values of each column, in the order of the lanes; all get the result.
template <int N, class V, class F>
VESTA_DEVICE void combine_lanes(V (&v)[N], unsigned width, unsigned lanes, F combine) {
  VESTA_SHARED(V, parts, kTeamThreads * N);
  if (lanes == 1) return;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) parts[j * kTeamThreads + threadIdx.x] = v[j];
  block_barrier();
  const unsigned column = threadIdx.x % width;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    V r = parts[j * kTeamThreads + column];
    VESTA_ROLLED
    for (unsigned lane = 1; lane < lanes; ++lane) r = combine(r, parts[j * kTeamThreads + lane * width + column]);
    v[j] = r;
  }
}

template <class T, int N, bool log>
VESTA_KERNEL void softmax_columns_kernel(ColumnsArgs<T> a) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const Place<T, N> place(a);
  ExpSum<C> s[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) s[j] = {C(-INFINITY), C(0)};
  place.template each<false>(a, [&](const Pack* x, const Pack*, int count, int64_t) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      C top = s[j].top;
      VESTA_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (k < count) top = extremum(top, convert<C>(x[k].v[j]));
      }
      const C shift = finite_top(top);
      C sum = s[j].top == top ? s[j].sum : s[j].sum * math::exp(s[j].top - shift);
      VESTA_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (k < count) sum = sum + row_exp<T>(convert<C>(x[k].v[j]) - shift);
      }
      s[j] = {top, sum};
    }
  });
  combine_lanes(s, a.width, place.lanes, [](const ExpSum<C>& p, const ExpSum<C>& q) { return combine_exp_sums(p, q); });
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
VESTA_KERNEL void softmax_columns_gradient_kernel(ColumnsArgs<T> a) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const Place<T, N> place(a);
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

template <class T, int N>
void run(const SoftmaxLaunch& l, int64_t inner) {
  ColumnsArgs<T> a{};
  a.x = reinterpret_cast<const T*>(l.x), a.grad = reinterpret_cast<const T*>(l.grad), a.y = reinterpret_cast<T*>(l.y);
  a.packs = Divider(inner / N), a.count = l.rows / N, a.n = l.n, a.step = inner;
  a.width = l.n < kManyRows ? kTeamThreads : kTeamThreads / kLanes;
  const LaunchShape shape =
      linear_shape(uint64_t((a.count + a.width - 1) / a.width) * kTeamThreads, kTeamThreads, l.stream);
  auto launch = [&]<bool log>() {
    if (l.grad) launch_block(l.name, softmax_columns_gradient_kernel<T, N, log>, shape, a);
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

}  // namespace vesta::cuda
