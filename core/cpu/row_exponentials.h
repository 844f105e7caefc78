// Exponentials of the numbers of a row less its largest one, several vectors at a time, and their sum.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <vesta/core/cpu/row_sums.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/simd_math.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// The constants of exp_of_normal(), which the compiler does not see through: it keeps some in registers and reads the
/// others where they are used. Those that it knows it makes anew for each vector, which takes as long as the rest
/// (build/bin/bandwidth 'logsumexp(1)' of 4 MiB with AVX2).
struct ExpConstants {
  using V = Vec<float>;
  V least{-87.0f}, scale{0x1.715476p+0f}, magic{kExpMagic}, high{-kLogHigh}, low{-kLogLow}, one{1.0f};
  V c0{0x1.fffffcp-2f}, c1{0x1.555492p-3f}, c2{0x1.5558f2p-5f}, c3{0x1.1239e2p-7f}, c4{0x1.6a2432p-10f};
  VESTA_INLINE ExpConstants() {
    hide(least), hide(scale), hide(magic), hide(high), hide(low), hide(one);
    hide(c0), hide(c1), hide(c2), hide(c3), hide(c4);
  }
  VESTA_INLINE static void hide(V& v) { asm("" : "+x"(v.raw)); }
  /// Returns where e^x is a normal number, for x <= 0: the exponent may be added to the bits then.
  VESTA_INLINE Mask<float> is_normal(V x) const { return x >= least; }
  /// Computes e^x there, with the bits of math::exp: scaling takes two independent instructions instead of nine.
  VESTA_INLINE V exp_of_normal(V x) const {
    const V shifted = mul_add(x, scale, magic), n = shifted - magic;
    const V r = mul_add(n, low, mul_add(n, high, x));
    const V q = mul_add(r, mul_add(r, mul_add(r, mul_add(r, c4, c3), c2), c1), c0);
    const V e = mul_add(r * r, q, r) + one;
    return V::from_bits(e.bits() + (shifted.bits() << 23));
  }
};

[[gnu::noinline]] inline Vec<float> exp_of_any(Vec<float> x) { return math::exp(x); }
/// Computes e^x for x <= 0 or NaN (of other lanes anything), with the bits of math::exp.
template <class C>
VESTA_INLINE Vec<C> exp_down(const ExpConstants& constants, Vec<C> x) {
  if constexpr (std::is_same_v<C, float>) {
    if (all(constants.is_normal(x))) [[likely]]
      return constants.exp_of_normal(x);
    return exp_of_any(x);
  }
  return math::exp(x);
}

[[gnu::noinline]] inline void exp_of_four(Vec<float>* v) {
#pragma GCC unroll 1
  for (int w = 0; w < 4; ++w) v[w] = math::exp(v[w]);
}
/// Computes exp_down() of four vectors: one branch for all of them, and no other code in the loop (build/bin/bandwidth
/// 'logsumexp(1)' of 4 MiB: 1.4 times as fast with AVX2).
template <class C>
VESTA_INLINE void exp_down_four(const ExpConstants& k, Vec<C> (&v)[4]) {
  if constexpr (std::is_same_v<C, float>) {
    if (all((k.is_normal(v[0]) & k.is_normal(v[1])) & (k.is_normal(v[2]) & k.is_normal(v[3])))) [[likely]] {
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) v[w] = k.exp_of_normal(v[w]);
      return;
    }
    Vec<C> kept[4] = {v[0], v[1], v[2], v[3]};  // v stays in registers
    exp_of_four(kept);
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) v[w] = kept[w];
  } else {
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) v[w] = math::exp(v[w]);
  }
}

/// Adds up the exponentials of the vectors of x(i, n), which are not above 0, over those of a row, in the order of
/// sum_all; each goes to keep(e, i, n).
template <class C, class X, class Keep>
VESTA_INLINE double sum_exponentials(int64_t n, X x, Keep keep) {
  constexpr int64_t N = Vec<C>::N;
  const ExpConstants constants;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += N * kChainVectors) {
    const int64_t end = std::min(n, begin + N * kChainVectors);
    Sums<C, 1> chain[4];
    clear_chains<C, 1>(chain);
    int64_t i = begin;
    for (; i + 4 * N <= end; i += 4 * N) {
      Vec<C> v[4];
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) v[w] = x(i + w * N, N);
      exp_down_four(constants, v);
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) keep(v[w], i + w * N, N), chain[w][0] = chain[w][0] + v[w];
    }
    const auto one = [&](int64_t k, int64_t w) __attribute__((always_inline)) {
      const Vec<C> e = exp_down(constants, x(k, w));
      keep(e, k, w);
      return std::array{e};
    };
    total += double(sum_of_lanes(add_to_chains<C, 1>(i, end, chain, one)[0]));
  }
  return total;
}

/// Returns a row's maximum, or 0 if it is -inf (then every exp(x - 0) is 0 and not NaN).
template <class C>
VESTA_INLINE C finite_max(C m) {
  return m == -std::numeric_limits<C>::infinity() ? C(0) : m;
}

/// Computes log (m 2^power) = power log 2 + 2 artanh((m - 1) / (m + 1)), m in [sqrt(1/2), sqrt(2)).
template <class V>
VESTA_INLINE V log_of_parts(V m, V power) {
  const V s = (m - V(1.0)) / (m + V(1.0)), z = s * s;
  V series(1.0 / 13);
  for (int k = 11; k > 0; k -= 2) series = series * z + V(1.0 / k);
  return power * V(0.69314718055994530942) + (s + s) * series;
}
inline constexpr int64_t kRootOfHalf = 0x3fe6a09e667f3bcd;  ///< the bits of sqrt(1/2)

/// Computes the logarithms of sums of exponentials, of which the largest is 1, for results of C. Those for float are
/// off by 1e-11 of their value at most, and take a quarter of the time of std::log.
template <class C>
VESTA_INLINE Vec<double> log_of_sums(Vec<double> sums) {
  using V = Vec<double>;
  if constexpr (std::is_same_v<C, double>) return math::log(sums);
  const Mask<double> usual = (sums >= V(1.0)) & (sums < V(0x1p52));
  typedef uint64_t Words __attribute__((vector_size(kVectorBytes)));
  const Words exponent = (Words)(sums.bits() - kRootOfHalf) >> 52;
  const V m = V::from_bits((typename V::Bits)((Words)sums.bits() - (exponent << 52)));
  const V power = V::from_bits((typename V::Bits)(exponent | (Words)V(0x1p52).bits())) - V(0x1p52);
  const V fast = log_of_parts(m, power);
  if (all(usual)) [[likely]]
    return fast;
  return select(usual, fast, math::log(sums));
}
/// Computes that of one sum, with the same bits: a quotient of one number takes a third of the time of a vector's.
template <class C>
VESTA_INLINE double log_of_sum(double sum) {
  if (std::is_same_v<C, double> || !(sum >= 1.0 && sum < 0x1p52)) return log_of_sums<C>(Vec<double>(sum))[0];
  const uint64_t bits = __builtin_bit_cast(uint64_t, sum), exponent = (bits - uint64_t(kRootOfHalf)) >> 52;
  return log_of_parts(__builtin_bit_cast(double, bits - (exponent << 52)), double(exponent));
}

}  // namespace vesta::cpu::VESTA_ISA_NS
