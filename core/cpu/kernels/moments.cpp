// Means and sums of squared deviations of columns that lie side by side: of a block of rows in vectors, twice while the
// first cache has it, then of the blocks in double.
#include <vesta/core/cpu/reduce.h>

#include <algorithm>

#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/wide_statistics.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int64_t kRows = 32;  // of a block, which L2 keeps for a second pass
constexpr int64_t kStrip = 1024;  // columns
constexpr int kWays = 4;  // vectors of columns side by side

/// Writes numbers near the means of w columns over `rows` rows, which are read as the streams that they are.
template <class T, class C>
VESTA_INLINE void find_centers(const char* x, int64_t stride, int64_t rows, int64_t w, C* near) {
  const auto row = [&](int64_t r) { return reinterpret_cast<const T*>(x + r * stride); };
  C sum[kStrip];
  const T* const first = row(0);
  for (int64_t j = 0; j < w; ++j) sum[j] = C(0);
  int64_t r = 1;
  const auto add = [&](auto count) __attribute__((always_inline)) {
    each_vector<C>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
      const Vec<C> shift = load_row<C>(first + j, n);
      Vec<C> s = load_row<C>(sum + j, n);
      for (int64_t k = 0; k < count; ++k) s = s + (load_row<C>(row(r + k) + j, n) - shift);
      store_row<C>(s, sum + j, n);
    });
  };
  for (; r + 4 <= rows; r += 4) add(std::integral_constant<int64_t, 4>{});
  for (; r < rows; ++r) add(std::integral_constant<int64_t, 1>{});
  each_vector<C>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
    store_row<C>(load_row<C>(first + j, n) + load_row<C>(sum + j, n) / Vec<C>(C(rows)), near + j, n);
  });
}

/// Computes the means and squares of `ways` vectors of columns, the last one of `n` numbers, around `near`.
template <int ways, class T, class C>
VESTA_INLINE void block(const char* x, int64_t stride, int64_t rows, int64_t n, const C* near, double* mean,
                        double* squares) {
  using V = Vec<C>;
  constexpr int64_t N = V::N;
  const int64_t count = ways > 1 ? N : n;
  V center[ways], sum[ways], square[ways];
  for (int w = 0; w < ways; ++w) center[w] = load_row<C>(near + w * N, count), sum[w] = square[w] = V(C(0));
  for (int64_t r = 0; r < rows; ++r) {
    for (int w = 0; w < ways; ++w) {
      const T* const at = reinterpret_cast<const T*>(x + r * stride) + w * N;
      __builtin_prefetch(reinterpret_cast<const char*>(at) + rows * stride, 0, 2);  // of the next block
      const V d = load_row<C>(at, count) - center[w];
      sum[w] = sum[w] + d, square[w] = square[w] + d * d;
    }
  }
  const double part = 1 / double(rows);
  V check = square[0] * V(C(0));  // 0 in every lane, or not a number
  for (int w = 1; w < ways; ++w) check = check + square[w] * V(C(0));
  C lanes[N];
  check.store(lanes);
  for (int w = 0; w < ways; ++w) {
    C rest[N], dots[N];
    sum[w].store(rest), square[w].store(dots);
    for (int64_t j = 0; j < count; ++j) {
      const double d = double(rest[j]);
      mean[w * N + j] = double(near[w * N + j]) + d * part;
      squares[w * N + j] = double(dots[j]) - d * d * part;
    }
  }
  if (std::all_of(lanes, lanes + N, [](C v) { return v == C(0); })) [[likely]]
    return;
  const T* const column = reinterpret_cast<const T*>(x);
  for (int64_t j = 0; j < (ways - 1) * N + count; ++j) {
    enter_statistics(mean[j], squares[j], column + j, stride / int64_t(sizeof(T)), rows, mean + j, squares + j);
  }
}

template <class T>
void column_moments(const char* bytes, int64_t stride, int64_t rows, int64_t cols, char* out) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  C near[kStrip];
  Statistics* to = reinterpret_cast<Statistics*>(out);
  double mean[kStrip], squares[kStrip], means[kStrip], parts[kStrip];
  for (int64_t c = 0; c < cols; c += kStrip) {
    const int64_t w = cols - c < kStrip ? cols - c : kStrip;
    for (int64_t r = 0; r < rows; r += kRows) {
      const int64_t n = rows - r < kRows ? rows - r : kRows;
      const char* const x = bytes + r * stride + c * int64_t(sizeof(T));
      double *const m = r == 0 ? mean : means, *const s = r == 0 ? squares : parts;
      find_centers<T>(x, stride, n, w, near);
      int64_t j = 0;
      for (; j + kWays * N <= w; j += kWays * N) {
        block<kWays, T>(x + j * int64_t(sizeof(T)), stride, n, N, near + j, m + j, s + j);
      }
      for (; j < w; j += N) {
        block<1, T>(x + j * int64_t(sizeof(T)), stride, n, w - j < N ? w - j : N, near + j, m + j, s + j);
      }
      if (r == 0) continue;
      const double part = double(n) / double(r + n), weight = double(r) * part;  // as Statistics::add
      for (int64_t k = 0; k < w; ++k) {
        const double apart = means[k] - mean[k];
        mean[k] += apart * part;
        squares[k] += parts[k] + apart * apart * weight;
      }
    }
    for (int64_t k = 0; k < w; ++k) to[c + k] = {double(rows), mean[k], squares[k]};
  }
}

}  // namespace

void register_column_moments(ColumnMoments (&table)[kNumDTypes]) {
  table[int(DType::float32)] = &column_moments<float>;
  table[int(DType::float64)] = &column_moments<double>;
  table[int(DType::float16)] = &column_moments<Half>;
  table[int(DType::bfloat16)] = &column_moments<BFloat16>;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
