// Means and sums of squared deviations of columns that lie side by side: of a block of rows in vectors, then of the
// blocks in double.
#include <vesta/core/cpu/reduce.h>

#include <algorithm>
#include <limits>

#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/wide_statistics.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int64_t kRows = 32;  // of a block
constexpr int64_t kCenterRows = 8;  // whose mean is the center of the first block
constexpr int64_t kStrip = 1024;  // columns

/// Writes the means of the first `rows` rows of w columns.
template <class T, class C>
VESTA_INLINE void find_centers(const char* x, int64_t stride, int64_t rows, int64_t w, C* near) {
  const auto row = [&](int64_t r) { return reinterpret_cast<const T*>(x + r * stride); };
  const Vec<C> count{C(rows)};
  each_vector<C>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
    const Vec<C> first = load_row<C>(row(0) + j, n);
    Vec<C> s(C(0));
    for (int64_t r = 1; r < rows; ++r) s = s + (load_row<C>(row(r) + j, n) - first);
    store_row<C>(first + s / count, near + j, n);
  });
}

/// Adds the deviations of w columns from `near`, and their squares. Some rows are read side by side, as the streams
/// that they are, so that sums are loaded and stored once for all of them, and grow by them at once: fewer sums are
/// rounded.
template <class T, class C>
VESTA_INLINE void add_deviations(const char* x, int64_t stride, int64_t rows, int64_t w, const C* near, C* sums,
                                 C* squares) {
  int64_t r = 0;
  const auto add = [&](auto count) __attribute__((always_inline)) {
    each_vector<C>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
      const Vec<C> center = load_row<C>(near + j, n);
      Vec<C> sum = load_row<C>(sums + j, n), square = load_row<C>(squares + j, n);
      const auto deviation = [&](int64_t k) __attribute__((always_inline)) {
        const T* const at = reinterpret_cast<const T*>(x + (r + k) * stride) + j;
        __builtin_prefetch(reinterpret_cast<const char*>(at) + count * stride, 0, 2);
        return load_row<C>(at, n) - center;
      };
      if constexpr (count == 4) {
        const Vec<C> a = deviation(0), b = deviation(1), c = deviation(2), d = deviation(3);
        sum = sum + ((a + b) + (c + d)), square = square + (mul_add(b, b, a * a) + mul_add(d, d, c * c));
      } else {
        const Vec<C> d = deviation(0);
        sum = sum + d, square = mul_add(d, d, square);
      }
      store_row<C>(sum, sums + j, n), store_row<C>(square, squares + j, n);
    });
  };
  for (; r + 4 <= rows; r += 4) add(std::integral_constant<int64_t, 4>{});
  for (; r < rows; ++r) add(std::integral_constant<int64_t, 1>{});
}

/// The statistics of some columns so far.
struct ColumnStatistics {
  double *mean, *squares;
  int64_t count;  // rows
};

/// Adds those of n more columns of a block of rows, up to a vector of them, whose centers are off or whose sums no
/// float holds: Note [Statistics in one pass].
template <class T, class C>
[[gnu::noinline]] void add_again(const char* x, int64_t stride, int64_t rows, int64_t n, C* near, const C* sums,
                                 const C* squares, const ColumnStatistics& to) {
  const double part = 1 / double(rows);
  for (int64_t j = 0; j < n; ++j) {
    const Deviations d{double(sums[j]), double(squares[j])};
    if (d.is_off(part)) near[j] = C(double(near[j]) + d.apart(part));
  }
  C again[Vec<C>::N] = {}, squares_again[Vec<C>::N] = {};
  add_deviations<T>(x, stride, rows, n, near, again, squares_again);
  const T* const column = reinterpret_cast<const T*>(x);
  for (int64_t j = 0; j < n; ++j) {
    const Deviations d{double(again[j]), double(squares_again[j])};
    double mean, around;
    enter_statistics(double(near[j]) + d.apart(part), d.around_mean(part), column + j, stride / int64_t(sizeof(T)),
                     rows, &mean, &around);
    if (to.count == 0) {  // the square of a mean may be infinite
      to.mean[j] = mean, to.squares[j] = around;
      continue;
    }
    const double share = double(rows) / double(to.count + rows), apart = mean - to.mean[j];  // as Statistics::add
    to.mean[j] += apart * share;
    to.squares[j] += around + apart * apart * (double(to.count) * share);
  }
}

/// Adds the statistics of w columns of a block of rows.
template <class T, class C>
VESTA_INLINE void add_columns(const char* x, int64_t stride, int64_t rows, int64_t w, C* near, const C* sums,
                              const C* squares, const ColumnStatistics& to) {
  using D = Vec<double>;
  const double share = double(rows) / double(to.count + rows);
  const D part{1 / double(rows)}, most{std::numeric_limits<double>::max()}, of_more{share},
      weight{double(to.count) * share};
  each_vector<double>(w, [&](int64_t j, int64_t n) __attribute__((always_inline)) {
    const D sum = load_row<double>(sums + j, n), apart_from_center = sum * part, corrected = sum * apart_from_center,
            around = load_row<double>(squares + j, n) - corrected;
    if (!all((corrected <= around) & (around <= most))) [[unlikely]] {
      return add_again<T>(x + j * int64_t(sizeof(T)), stride, rows, n, near + j, sums + j, squares + j,
                          {to.mean + j, to.squares + j, to.count});
    }
    const D of_block = load_row<double>(near + j, n) + apart_from_center;
    if (to.count == 0) {  // the square of a mean may be infinite
      store_row<double>(of_block, to.mean + j, n);
      return store_row<double>(around, to.squares + j, n);
    }
    const D mean = load_row<double>(to.mean + j, n), apart = of_block - mean;
    store_row<double>(mean + apart * of_more, to.mean + j, n);
    store_row<double>(load_row<double>(to.squares + j, n) + (around + apart * apart * weight), to.squares + j, n);
  });
}

template <class T>
void column_moments(const char* bytes, int64_t stride, int64_t rows, int64_t cols, char* out) {
  using C = compute_t<T>;
  C near[kStrip], sums[kStrip], dots[kStrip];
  Statistics* to = reinterpret_cast<Statistics*>(out);
  double mean[kStrip], squares[kStrip];
  for (int64_t c = 0; c < cols; c += kStrip) {
    const int64_t w = cols - c < kStrip ? cols - c : kStrip;
    for (int64_t k = 0; k < w; ++k) mean[k] = squares[k] = 0;
    for (int64_t r = 0; r < rows; r += kRows) {
      const int64_t n = rows - r < kRows ? rows - r : kRows;
      const char* const x = bytes + r * stride + c * int64_t(sizeof(T));
      if (r == 0) {
        find_centers<T>(x, stride, n < kCenterRows ? n : kCenterRows, w, near);
      } else {  // the mean of the blocks before
        for (int64_t k = 0; k < w; ++k) near[k] = C(mean[k]);
      }
      for (int64_t k = 0; k < w; ++k) sums[k] = dots[k] = C(0);
      add_deviations<T>(x, stride, n, w, near, sums, dots);
      add_columns<T>(x, stride, n, w, near, sums, dots, {mean, squares, r});
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
