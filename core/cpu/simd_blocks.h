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

/// Computes D's formula, a function of x and normal_cdf(x). A vector with an x far from 0 takes the steps of both.
template <class D, std::size_t n>
VESTA_INLINE void compute_of_normal(Vec<float> (&v)[n]) {
  constexpr std::size_t kTogether = Vec<float>::N == 16 ? 4 : 2;  // with 16 registers four have too many
  static_assert(n % kTogether == 0);
  Vec<float> tails[n];
#pragma GCC unroll 2
  for (std::size_t k = 0; k < n; k += kTogether) {
    Vec<float> some[kTogether];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kTogether; ++i) some[i] = abs(v[k + i]);
    near_tails<false>(some);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kTogether; ++i) tails[k + i] = some[i];
  }
  const auto is_near = [](Vec<float> x)
                           __attribute__((always_inline)) { return abs(x) < Vec<float>(NearTail::kLimit); };
  Mask<float> near(true);
#pragma GCC unroll 4
  for (std::size_t k = 0; k < n; ++k) near = near & is_near(v[k]);
  if (!all(near)) [[unlikely]] {
#pragma GCC unroll 1
    for (std::size_t k = 0; k < n; ++k) {
      if (!all(is_near(v[k]))) tails[k] = select(is_near(v[k]), tails[k], far_tail<false>(abs(v[k])));
    }
  }
#pragma GCC unroll 4
  for (std::size_t k = 0; k < n; ++k) v[k] = D::of_normal_cdf(v[k], of_tail(v[k], tails[k]));
}

}  // namespace vesta::cpu::VESTA_ISA_NS
