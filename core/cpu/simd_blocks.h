// Functions of several vectors at a time, where one test shows that all of them may go a shorter way. Each computes in
// place and returns whether it did; the values are those of the functions of one vector.
#pragma once

#include <vesta/core/cpu/simd_math.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// Raises vectors to the power halves / 2 where that is products and roots for all of them.
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

/// A vector of numbers whose e^x and e^-x are normal.
struct ModerateVec : Vec<float> {
  VESTA_INLINE ModerateVec(Vec<float> v) : Vec<float>(v) {}
};
/// Computes e^x: scaled by two instructions in place of nine (build/bin/bandwidth exp, 4 MiB: 1.7 times as fast with
/// AVX2).
VESTA_INLINE ModerateVec exp(ModerateVec x) { return exp_normal(x); }
VESTA_INLINE ModerateVec sigmoid(ModerateVec x) {
  const Vec<float> one(1.0f), e = exp_normal(-abs(Vec<float>(x)));
  return select(x < Vec<float>(0.0f), e, one) / (one + e);
}

/// Computes D's formula, whose exponentials are of its operand, where those are normal.
template <class D, std::size_t n>
VESTA_INLINE bool compute_moderate(Vec<float> (&v)[n]) {
  Mask<float> moderate(true);
#pragma GCC unroll 4
  for (std::size_t k = 0; k < n; ++k) moderate = moderate & (abs(v[k]) <= Vec<float>(87.0f));
  if (!all(moderate)) [[unlikely]]
    return false;
#pragma GCC unroll 4
  for (std::size_t k = 0; k < n; ++k) v[k] = D::forward(ModerateVec(v[k]));
  return true;
}

/// Computes D's formula, a function of x and normal_cdf(x), where no x is far from 0.
template <class D, std::size_t n>
VESTA_INLINE bool compute_near_normal(Vec<float> (&v)[n]) {
  static_assert(n % 2 == 0);
  Mask<float> near(true);
#pragma GCC unroll 4
  for (std::size_t k = 0; k < n; ++k) near = near & (abs(v[k]) < Vec<float>(NearTail::kLimit));
  if (!all(near)) [[unlikely]]
    return false;
#pragma GCC unroll 2
  for (std::size_t k = 0; k < n; k += 2) {  // two at once: four have too many registers
    Vec<float> tails[2] = {abs(v[k]), abs(v[k + 1])};
    normal_tails<false, true>(tails);
    v[k] = D::of_normal_cdf(v[k], of_tail(v[k], tails[0]));
    v[k + 1] = D::of_normal_cdf(v[k + 1], of_tail(v[k + 1], tails[1]));
  }
  return true;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
