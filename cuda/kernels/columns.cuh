// Columns that lie side by side, read as they lie: a thread has 16 bytes of neighbouring columns and every `lanes`-th
// row of them. The order of a column's sums depends on its length alone, not on what lies beside it.
#pragma once
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {

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
  int64_t stride;        // elements from pack to pack
  unsigned width;        // packs of a block; its threads by `width` are its lanes

  /// Sets the geometry of [outer, n, inner], in packs of N: rows of neighbours, or if `pixels` columns one by one.
  LaunchShape set(int64_t columns, int64_t rows, int64_t inner, int N, bool pixels, StreamHandle stream) {
    packs = Divider(inner / N), count = columns / N, n = rows;
    step = pixels ? 1 : inner, stride = pixels ? rows : N;
    width = rows < kManyRows ? kTeamThreads : kTeamThreads / kLanes;
    return linear_shape(uint64_t((count + width - 1) / width) * kTeamThreads, kTeamThreads, stream);
  }
};

/// The position of a thread's columns, and whether they exist.
template <class T, int N>
struct ColumnPlace {
  int64_t pack, at;
  unsigned lane, lanes;
  bool exists;
  VESTA_DEVICE explicit ColumnPlace(const ColumnsArgs<T>& a) {
    const unsigned column = threadIdx.x % a.width;
    lane = threadIdx.x / a.width, lanes = kTeamThreads / a.width;
    pack = int64_t(blockIdx.x) * a.width + column;
    exists = pack < a.count;
    const int64_t outer = exists ? a.packs.divide(pack) : 0;
    at = outer * a.n * a.packs.divisor * N + (exists ? pack - outer * a.packs.divisor : 0) * a.stride;
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

/// Combines the lanes' values of each column, in the order of the lanes; all get the result. A kernel calls it once for
/// each V and N: a second call would overwrite `parts` while others still read, and needs a barrier before it.
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

/// Adds a thread's rows of columns of T to sums of exponentials, in one pass (Milakov and Gimelshein 2018).
template <class T, int N, class C>
VESTA_DEVICE void add_rows_exp(ExpSum<C> (&s)[N], const Elements<T, N>* x, int count) {
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
}

/// Returns in `s` the sums of exponentials of a thread's columns, over all lanes.
template <class T, int N, class C>
VESTA_DEVICE void exp_sums_of_columns(const ColumnsArgs<T>& a, const ColumnPlace<T, N>& place, ExpSum<C> (&s)[N]) {
  using Pack = Elements<T, N>;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) s[j] = {C(-INFINITY), C(0)};
  place.template each<false>(a,
                             [&](const Pack* x, const Pack*, int count, int64_t) { add_rows_exp<T, N>(s, x, count); });
  combine_lanes(s, a.width, place.lanes, [](const ExpSum<C>& p, const ExpSum<C>& q) { return combine_exp_sums(p, q); });
}

}  // namespace vesta::cuda
