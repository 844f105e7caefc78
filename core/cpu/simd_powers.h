// A power of several vectors, for a number as exponent that is known when the code is compiled.
#pragma once

#include <vesta/core/cpu/simd_math.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// Raises vectors to the power halves / 2 in place where that is products and roots for all of them: one test, and the
/// values of pow(). Returns whether it did.
template <int halves, class T, std::size_t n>
VESTA_INLINE bool raise_all(Vec<T> (&v)[n], std::integral_constant<int, halves>) {
  using E = Exponent<halves>;
  if constexpr (E::exists) {
    Mask<T> easy(true);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < n; ++k) easy = easy & E::holds(v[k]);
    if (!all(easy)) [[unlikely]]
      return false;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < n; ++k) v[k] = E::power(v[k]);
  }
  return E::exists;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
