// Statistics in double, for the kernels that add up in vectors of floats.
#pragma once
#include <cmath>
#include <cstdint>

#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

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
