// Statistics of pieces, for the kernels that add up in vectors of floats.
//
// Note [Statistics in one pass]
// Deviations are summed up around a center, the mean of the first elements of a piece, and corrected by what the mean
// of all is apart from it. That loses no more than a digit while the center is within a standard deviation of the mean.
// Where the sums say that it is not, they are taken again around the mean that they gave, while the cache still has the
// piece. All of this depends on the elements of a piece alone.
#pragma once
#include <cmath>
#include <cstdint>

#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// Returns how many of the first elements of a piece of n make its center.
template <class C>
constexpr int64_t center_elements(int64_t n) {
  constexpr int64_t N = Vec<C>::N;
  return n >= 16 * N ? 4 * N : n < N ? n : N;
}
/// The sums of n = 1 / part deviations from a center and of their squares.
struct Deviations {
  double sum, squares;
  /// Returns what the mean is apart from the center.
  VESTA_INLINE double apart(double part) const { return sum * part; }
  /// Returns the squares of the deviations from the mean.
  VESTA_INLINE double around_mean(double part) const { return squares - sum * (sum * part); }
  /// Returns whether the center was too far from the mean.
  VESTA_INLINE bool is_off(double part) const { return sum * (sum * part) > around_mean(part); }
};

/// Computes the statistics of n elements, `step` apart, in double: of those whose sums float32 cannot hold, and of
/// infinities.
template <class T>
[[gnu::noinline]] Statistics wide_statistics(const T* x, int64_t step, int64_t n) {
  const auto at = [&](int64_t i) { return double(static_cast<compute_t<T>>(x[i * step])); };
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += at(i);
  const double mean = sum / double(n);
  for (int64_t i = 0; i < n; ++i) squares += (at(i) - mean) * (at(i) - mean);
  return {double(n), mean, squares};
}
/// Enters a mean and a sum of squares, and computes them again where they are not finite.
template <class T>
VESTA_INLINE void enter_statistics(double m, double s, const T* x, int64_t step, int64_t n, double* mean,
                                   double* squares) {
  if (!std::isfinite(s)) [[unlikely]] {
    const Statistics wide = wide_statistics(x, step, n);
    m = wide.mean, s = wide.squares;
  }
  *mean = m, *squares = s;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
