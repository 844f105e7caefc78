// Own functions of Vec<float>: exp, expm1, log, tanh, erf, erfc, normal_cdf. Included by simd_math.h.
//
// Note [Own functions beside SLEEF]
// Activations, softmax and losses depend on these functions. Each was measured at least twice as fast as SLEEF's with
// AVX2 on a Zen 3 core (benchmarks/cpp/simd_functions.cpp; ns per element, SLEEF's first: expm1 2.08 and 0.37, log
// 1.36 and 0.67, tanh 2.52 and 0.83 before it had a table, erf 3.94 and 0.97, erfc 5.35 and 1.36); exp, of which others
// are made, 1.8 times (0.71 and 0.39). simd_math_test.cpp bounds the errors. They are branch-free, inlined into their
// loop, and take the same steps with AVX2 and AVX-512: equal bits. The baseline takes them without FMA: its last bit
// may differ. Polynomials are minimax (Remez exchange, Lawson's weights), computed for this file; the error stated
// beside a polynomial is its own, before rounding.
#pragma once

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// Evaluates c0 + z c1 + z^2 c2 + ... by Horner's rule.
template <class T>
VESTA_INLINE Vec<T> horner(Vec<T>, T c) {
  return Vec<T>(c);
}
template <class T, class... Rest>
VESTA_INLINE Vec<T> horner(Vec<T> z, T c, Rest... rest) {
  return mul_add(z, horner(z, rest...), Vec<T>(c));
}

/// The value e^x as 2^n e^(r - n kLogLow); r is exact. n is held twice, as a float and in the low bits of `shifted`.
struct ExpSplit {
  Vec<float> r, n, shifted;
};
inline constexpr float kExpMagic = 0x1.8p23f;  // leaves the nearest integer in the low bits
inline constexpr float kLogHigh = 0x1.62e4p-1f, kLogLow = 0x1.7f7d1cp-20f;  // log 2, 15 bits first

/// Splits e^x for |x| < 2^15.
VESTA_INLINE ExpSplit split_exp(Vec<float> x) {
  const Vec<float> shifted = mul_add(x, Vec<float>(0x1.715476p+0f), Vec<float>(kExpMagic));
  const Vec<float> n = shifted - Vec<float>(kExpMagic);
  return {mul_add(n, Vec<float>(-kLogHigh), x), n, shifted};
}

/// Returns the exponent that is left, |result| <= log(2) / 2, plus `low`, a small part of x that a float could not
/// hold.
VESTA_INLINE Vec<float> rest(const ExpSplit& s, Vec<float> low) {
  return s.r + mul_add(s.n, Vec<float>(-kLogLow), low);
}
VESTA_INLINE Vec<float> rest(const ExpSplit& s) { return mul_add(s.n, Vec<float>(-kLogLow), s.r); }

/// Computes e^r - 1 for |r| <= log(2) / 2 as r + r^2 q(r). Error 2^-28 of e^r.
VESTA_INLINE Vec<float> exp_fraction(Vec<float> r) {
  const Vec<float> q = horner(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f, 0x1.6a2432p-10f);
  return mul_add(r * r, q, r);
}

/// Computes x * 2^n for n in [-250, 250], rounding once: denormals and infinity come out as they should.
VESTA_INLINE Vec<float> scale(Vec<float> x, const ExpSplit& s) {
#ifdef VESTA_SIMD_AVX512
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_scalef_ps(0xffff, (__m512)x.raw, (__m512)s.n.raw));
#else
  const Vec<float>::Bits n = s.shifted.bits() - Vec<float>(kExpMagic).bits(), half = n >> 1;
  const Vec<float> first = Vec<float>::from_bits((half + 127) << 23);
  const Vec<float> second = Vec<float>::from_bits((n - half + 127) << 23);
  return x * first * second;
#endif
}

/// Computes e^x. Error below 1 ulp, denormal results included. What gives 0, as every element that a mask has set to
/// -inf or -1e9 does, is not multiplied down to it: a product that underflows takes a processor 20 times as long.
VESTA_INLINE Vec<float> exp(Vec<float> x) {
#ifdef VESTA_SIMD_AVX512
  // the same in two instructions less: lanes that give 0 are left out
  const __mmask16 some = _mm512_cmp_ps_mask((__m512)x.raw, _mm512_set1_ps(-104.0f), _CMP_NLT_UQ);
  const ExpSplit s =
      split_exp(Vec<float>((Vec<float>::Raw)_mm512_maskz_min_ps(some, _mm512_set1_ps(89.0f), (__m512)x.raw)));
  const Vec<float> y = exp_fraction(rest(s)) + Vec<float>(1.0f);
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_scalef_ps(some, (__m512)y.raw, (__m512)s.n.raw));
#else
  const Vec<float> zero(0.0f);
  const Mask<float> none = x < Vec<float>(-104.0f);
  const ExpSplit s = split_exp(lower_or_first(select(none, zero, x), Vec<float>(89.0f)));
  return select(none, zero, scale(exp_fraction(rest(s)) + Vec<float>(1.0f), s));
#endif
}

/// Computes e^x, whose rest is r, for x in [-87, 88], where one factor scales.
VESTA_INLINE Vec<float> exp_normal(const ExpSplit& s, Vec<float> r) {
  const Vec<float> e = exp_fraction(r) + Vec<float>(1.0f);
  return Vec<float>::from_bits(e.bits() + (s.shifted.bits() << 23));  // the magic number is shifted out at the top
}
/// Computes e^x there, with the bits of exp().
VESTA_INLINE Vec<float> exp_normal(Vec<float> x) {
  const ExpSplit s = split_exp(x);
  return exp_normal(s, rest(s));
}
/// Computes e^(x + low) there; low is small. NaN stays NaN: a power is multiplied, not added to the bits of any NaN.
VESTA_INLINE Vec<float> exp_normal(Vec<float> x, Vec<float> low) {
  const ExpSplit s = split_exp(x);
  const Vec<float> power = Vec<float>::from_bits((s.shifted.bits() + 127) << 23);
  return (exp_fraction(rest(s, low)) + Vec<float>(1.0f)) * power;
}

/// Computes e^x - 1 as 2^n (e^r - 1) + (2^n - 1). Error below 1.5 ulp.
VESTA_INLINE Vec<float> expm1(Vec<float> x) {
  const Vec<float> limited = lower_or_first(higher_or_first(x, Vec<float>(-20.0f)), Vec<float>(89.0f));
  const ExpSplit s = split_exp(limited);
  const Vec<float> fraction = exp_fraction(rest(s));
  // 2^128 is not a float: everything is computed at half size and doubled.
  const Vec<float> power = Vec<float>::from_bits((s.shifted.bits() + 126) << 23);
  const Vec<float> half = mul_add(fraction, power, power - Vec<float>(0.5f));
  return select(x == Vec<float>(0.0f), x, half + half);
}

/// Subtracts bits modulo 2^32: those of a negative number, whose logarithm is discarded, would overflow.
VESTA_INLINE Vec<float>::Bits wrapping_sub(Vec<float>::Bits a, Vec<float>::Bits b) {
  using Unsigned = std::uint32_t __attribute__((vector_size(sizeof(Vec<float>::Bits))));
  return (Vec<float>::Bits)((Unsigned)a - (Unsigned)b);
}

/// Computes log x: x = 2^e m with m in [2/3, 4/3), log m = f - f^2 / 2 + f^3 q(f), f = m - 1. Error of q 2^-27.7, in
/// all below 1 ulp.
VESTA_INLINE Vec<float> log(Vec<float> x) {
  const Vec<float> tiny(0x1p-126f);
  const Mask<float> denormal = x < tiny;
  const Vec<float> scaled = select(denormal, x * Vec<float>(0x1p23f), x);
  const Vec<float>::Bits bits = scaled.bits();
  const Vec<float>::Bits e = wrapping_sub(bits, Vec<float>::Bits{} + 0x3f2aaaab) >> 23;
  const Vec<float> m = Vec<float>::from_bits(wrapping_sub(bits, e << 23));
  const Vec<float> exponent =
      Vec<float>(__builtin_convertvector(e, Vec<float>::Raw)) - select(denormal, Vec<float>(23.0f), Vec<float>(0.0f));
  const Vec<float> f = m - Vec<float>(1.0f);
  const Vec<float> q = horner(f, 0x1.555506p-2f, -0x1.fffef0p-3f, 0x1.99d028p-3f, -0x1.559dccp-3f, 0x1.1ed716p-3f,
                              -0x1.f3113ep-4f, 0x1.1e66bap-3f, -0x1.08058cp-3f);
  const Vec<float> f2 = f * f;
  // e log 2 in two parts, the first one exact; then the small terms before the large ones.
  const Vec<float> low = mul_add(exponent, Vec<float>(0x1.7f7d1cp-20f), mul_add(f * q, f2, Vec<float>(-0.5f) * f2));
  const Vec<float> result = mul_add(exponent, Vec<float>(0x1.62e4p-1f), f + low);
  const Vec<float> infinity(__builtin_inff());
  const Vec<float> special = select(x == Vec<float>(0.0f), -infinity, Vec<float>(__builtin_nanf("")));
  return select(x < infinity, select(x > Vec<float>(0.0f), result, special), select(x == infinity, x, x + x));
}

/// Returns table[index % 8] in every lane.
VESTA_INLINE Vec<float> pick(const float (&table)[8], Vec<float>::Bits index) {
#if defined(VESTA_SIMD_AVX512)
  const __m512 all = _mm512_broadcast_f32x8(_mm256_loadu_ps(table));
  return Vec<float>((Vec<float>::Raw)_mm512_permutexvar_ps((__m512i)index, all));
#elif defined(VESTA_SIMD_AVX2)
  return Vec<float>((Vec<float>::Raw)_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index));
#else
  return Vec<float>(
      Vec<float>::Raw{table[index[0] & 7], table[index[1] & 7], table[index[2] & 7], table[index[3] & 7]});
#endif
}

/// tanh a for a in [3/4, 9.02) as c0 + d p(d), d = a - m, in seven intervals, whose number is in a's bits: its exponent
/// and the first bit of its fraction. Their middles m are such that tanh m is nearly a float, c0 (2^-34). In the place
/// of [1/2, 3/4), number 4, is what belongs to a < 3/4: a + a z p(z), z = a^2.
struct TanhParts {
  // [2, 3), [3, 4), [4, 6), [6, 9.02), below 3/4, [3/4, 1), [1, 3/2), [3/2, 2); error 2^-27.3, below 2 2^-30.6
  static constexpr float kMiddle[8] = {0x1.3f74p+1f, 0x1.c0788p+1f, 0x1.403dp+2f, 0x1.e0d5cp+2f, 0,
                                       0x1.c0e6p-1f, 0x1.3f53p+0f,  0x1.bf72p+0f};
  static constexpr float kC0[8] = {0x1.f9168ep-1f, 0x1.ff12ecp-1f, 0x1.fff43p-1f, 0x1.ffffecp-1f, 0,
                                   0x1.68da36p-1f, 0x1.b1f0fep-1f, 0x1.e1db96p-1f};
  static constexpr float kC1[8] = {0x1.b76022p-6f,  0x1.d9ba36p-9f, 0x1.79f7cap-13f, 0x1.3fa128p-20f,
                                   -0x1.555554p-2f, 0x1.01acc8p-1f, 0x1.206ee2p-2f,  0x1.d41468p-4f};
  static constexpr float kC2[8] = {-0x1.b1711ap-6f, -0x1.d8dfb6p-9f, -0x1.7a2fa4p-13f, -0x1.42b8fp-20f,
                                   0x1.111094p-3f,  -0x1.6b369cp-2f, -0x1.e8eb16p-3f,  -0x1.b885e2p-4f};
  static constexpr float kC3[8] = {0x1.19213p-6f,   0x1.3a1bd6p-9f, 0x1.f83a14p-14f, 0x1.aed724p-21f,
                                   -0x1.b9fe88p-5f, 0x1.50c3b8p-4f, 0x1.bc2e06p-4f,  0x1.028fecp-4f};
  static constexpr float kC4[8] = {-0x1.09d17cp-7f, -0x1.37aaep-10f, -0x1.f1f338p-15f, -0x1.8e56cep-22f,
                                   0x1.64bc4p-6f,   0x1.edd04ep-5f,  -0x1.9401ap-7f,   -0x1.820e68p-6f};
  static constexpr float kC5[8] = {0x1.7969e4p-9f,  0x1.eb6524p-12f, 0x1.8db01ap-16f, 0x1.3de144p-23f,
                                   -0x1.16bd36p-7f, -0x1.d235c2p-5f, -0x1.3e8a66p-6f, 0x1.e11efcp-9f};
  static constexpr float kC6[8] = {-0x1.6f647cp-11f, -0x1.4713ap-13f, -0x1.32b20cp-17f, -0x1.35828ap-24f,
                                   0x1.74a02cp-9f,   0x1.ad47d4p-7f,  0x1.f10e26p-7f,   0x1.14cbd4p-9f};
  static constexpr float kC7[8] = {0x1.f18f94p-15f,  0x1.5eca06p-15f, 0x1.5f0fc4p-19f, 0x1.62a02cp-26f,
                                   -0x1.27b68cp-11f, -0x1.b5bbap-5f,  -0x1.23b586p-8f, -0x1.024d32p-9f};
};

/// Computes tanh x without a division. Error below 0.8 ulp, 0.9 without FMA.
VESTA_INLINE Vec<float> tanh(Vec<float> x) {
  using V = Vec<float>;
  using P = TanhParts;
  const V a = lower_or_first(abs(x), V(9.02f)), z = a * a;  // tanh 9.02 rounds to 1
  const Mask<float> small = a < V(0.75f);
  const V::Bits index = lower_or_first(higher_or_first(a, V(0.5f)), V(7.0f)).bits() >> 22;
  const V d = a - pick(P::kMiddle, index), u = select(small, z, d);
  V p = pick(P::kC7, index);
  p = mul_add(u, p, pick(P::kC6, index));
  p = mul_add(u, p, pick(P::kC5, index));
  p = mul_add(u, p, pick(P::kC4, index));
  p = mul_add(u, p, pick(P::kC3, index));
  p = mul_add(u, p, pick(P::kC2, index));
  p = mul_add(u, p, pick(P::kC1, index));
  return copysign(mul_add(select(small, a * z, d), p, select(small, a, pick(P::kC0, index))), x);
}

/// Computes erf x: x + x p(x^2) below 1 (error 2^-34), beyond 1 - e^(t g(t) + c), a polynomial for log erfc x (error
/// 2^-35 of the result). Error below 1 ulp. (Two polynomials are N. Juffa's idea; these coefficients are our own.)
VESTA_INLINE Vec<float> erf(Vec<float> x) {
  const Vec<float> a = abs(x), one(1.0f), z = x * x;
  const Vec<float> p = horner(z, 0x1.06eba8p-3f, -0x1.812746p-2f, 0x1.ce2f08p-4f, -0x1.b829a8p-6f, 0x1.5628eep-8f,
                              -0x1.bcbe9ap-11f, 0x1.d82692p-14f, -0x1.438406p-17f);
  const Vec<float> small = mul_add(a, p, a);
  const Vec<float> t = lower_or_first(a, Vec<float>(4.0f));  // erf 4 rounds to 1
  const Vec<float> g = horner(t, -0x1.212bf6p+0f, -0x1.4435c4p-1f, -0x1.bc11e8p-4f, 0x1.9cfaf0p-6f, -0x1.1380d0p-8f,
                              0x1.cea032p-12f, -0x1.6ba648p-16f);
  const Vec<float> product = t * g;
  Vec<float> low(0x1.89c16ap-13f);
  if constexpr (kHasFma) low += mul_add(t, g, -product);  // what the product lost in rounding
  const Vec<float> large = one - exp_normal(product, low);
  return copysign(select(a < one, small, large), x);
}

/// Returns the rounding error of a * a, for a in [0, 16): a * a + error is the exact square.
VESTA_INLINE Vec<float> square_error(Vec<float> a, Vec<float> square) {
  if constexpr (kHasFma) {
    return mul_add(a, a, -square);
  } else {
    // Without FMA: the square of the upper 12 bits is exact, and so is its distance from `square`.
    const Vec<float> upper = Vec<float>::from_bits(a.bits() & ~0xfff), lower = a - upper;
    return (upper * upper - square) + lower * (upper + a);
  }
}

/// Computes e^(-square - error) F(q) / (1 + slope a), F(q) = first + q f: the tail of erfc and of the normal
/// distribution, scaled in one rounding. With FMA, rounding errors are known: that of the denominator and its
/// reciprocal, a relative one, is added back to the exponent, those of F and its quotient to the result.
VESTA_INLINE Vec<float> gaussian_tail(Vec<float> square, Vec<float> error, float first, Vec<float> q, Vec<float> f,
                                      Vec<float> a, float slope) {
  const Vec<float> one(1.0f), product = a * slope;
  const Vec<float> denominator = one + product;
  const Vec<float> inverse = one / denominator;
  const ExpSplit s = split_exp(-square);
  Vec<float> low = -error;
  if constexpr (kHasFma) {
    const Vec<float> lost = mul_add(a, slope, one - denominator);
    low += mul_add(-denominator, inverse, one) - lost * inverse;
  }
  const Vec<float> sum = mul_add(q, f, Vec<float>(first)), t = sum * inverse, e = exp_fraction(rest(s, low));
  if constexpr (kHasFma) {
    const Vec<float> lost = mul_add(q, f, Vec<float>(first) - sum);
    return scale(t + mul_add(t, e, mul_add(lost, inverse, mul_add(sum, inverse, -t))), s);
  } else {
    return scale(mul_add(t, e, t), s);
  }
}

/// Computes erfc x: for x >= 0 as e^(-x^2) F(q) / (1 + 2 x), q = (x - 3) / (x + 3), F a polynomial for
/// (1 + 2 x) e^(x^2) erfc x (error 2^-29), below 0 as 2 - erfc(-x), and for |x| < 0.75 as (1 - x) - x p(x^2) (2^-29).
/// The square is carried with its rounding error, so the tail keeps its relative accuracy down to denormals. Error
/// below 2.4 ulp, 4.4 without FMA.
VESTA_INLINE Vec<float> erfc(Vec<float> x) {
  const Vec<float> a = lower_or_first(abs(x), Vec<float>(10.2f));  // erfc 10.2 rounds to 0
  const Vec<float> q = (a - Vec<float>(3.0f)) / (a + Vec<float>(3.0f));
  const Vec<float> f = horner(q, -0x1.15c08ap-3f, -0x1.85a19ap-5f, 0x1.098412p-3f, -0x1.e8887ep-4f, 0x1.17bd48p-4f,
                              -0x1.85ea4ep-6f, 0x1.506772p-9f, 0x1.06955ep-9f, -0x1.96624cp-11f, -0x1.182830p-12f);
  const Vec<float> square = a * a;
  const Vec<float> tail = gaussian_tail(square, square_error(a, square), 0x1.40c522p+0f, q, f, a, 2.0f);
  const Vec<float> p =
      horner(x * x, 0x1.06eba8p-3f, -0x1.81273ap-2f, 0x1.ce2ac8p-4f, -0x1.b7a892p-6f, 0x1.4f2c7cp-8f, -0x1.61de70p-11f);
  const Vec<float> middle = mul_add(-x, p, Vec<float>(1.0f) - x);
  return select(a < Vec<float>(0.75f), middle, select(x < Vec<float>(0.0f), Vec<float>(2.0f) - tail, tail));
}

/// Returns table[index % 4] in every lane.
VESTA_INLINE Vec<float> pick(const float (&table)[4], Vec<float>::Bits index) {
#if defined(VESTA_SIMD_AVX512)
  const __m512 all = _mm512_broadcast_f32x4(_mm_loadu_ps(table));
  return Vec<float>((Vec<float>::Raw)_mm512_permutevar_ps(all, (__m512i)index));
#elif defined(VESTA_SIMD_AVX2)
  const __m256 all = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(table));
  return Vec<float>((Vec<float>::Raw)_mm256_permutevar_ps(all, (__m256i)index));
#else
  return Vec<float>(
      Vec<float>::Raw{table[index[0] & 3], table[index[1] & 3], table[index[2] & 3], table[index[3] & 3]});
#endif
}

/// Returns table[index % 16] in every lane.
VESTA_INLINE Vec<float> pick(const float (&table)[16], Vec<float>::Bits index) {
#if defined(VESTA_SIMD_AVX512)
  const __m512i all = _mm512_loadu_si512(table);
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_permutexvar_epi32(0xffff, (__m512i)index, all));
#elif defined(VESTA_SIMD_AVX2)
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index);
  return Vec<float>((Vec<float>::Raw)_mm256_blendv_ps(low, high, (__m256)(index << 28)));
#else
  return Vec<float>(
      Vec<float>::Raw{table[index[0] & 15], table[index[1] & 15], table[index[2] & 15], table[index[3] & 15]});
#endif
}

/// The normal distribution's lower tail near 0, normal_cdf(-a) for a in [0, 4.75): a polynomial in d = a - m in each of
/// 16 intervals, whose number is the integer next to a polynomial. Their middles m are such that the constant terms are
/// nearly floats (2^-28), so that the tail is rounded once, when small terms are added. Least squares at Chebyshev's
/// points; error 2^-26.8.
struct NearTail {
  static constexpr float kLimit = 4.75f, kSquared = 0x1.5f81d4p-2f, kLinear = 0x1.a16a2cp+0f;
  static constexpr float kMiddle[16] = {
      0x1.278p-3f,  0x1.13ep-1f, 0x1.00fp+0f,  0x1.69a8p+0f, 0x1.c78p+0f,  0x1.0e5cp+1f, 0x1.3768p+1f, 0x1.5cep+1f,
      0x1.8068p+1f, 0x1.a26p+1f, 0x1.c284p+1f, 0x1.e1bcp+1f, 0x1.ff44p+1f, 0x1.0e1ep+2f, 0x1.1c0ap+2f, 0x1.296ep+2f};
  static constexpr float kC0[16] = {0x1.c5429ap-2f,  0x1.2e1614p-2f,  0x1.431d5p-3f,   0x1.430c38p-4f,
                                    0x1.33fb96p-5f,  0x1.1c05eap-6f,  0x1.eadda8p-8f,  0x1.a4a8b2p-9f,
                                    0x1.5e32a8p-10f, 0x1.1b5f88p-11f, 0x1.c519f8p-13f, 0x1.5f4fbap-14f,
                                    0x1.10316cp-15f, 0x1.98d0fp-17f,  0x1.308374p-18f, 0x1.c34ccp-20f};
  static constexpr float kC1[16] = {-0x1.94495ap-2f,  -0x1.61519ap-2f,  -0x1.edbdc6p-3f,  -0x1.2d348cp-3f,
                                    -0x1.4f9614p-4f,  -0x1.5f2fb8p-5f,  -0x1.52e74p-6f,   -0x1.3e935ap-7f,
                                    -0x1.1fb11ap-8f,  -0x1.f4b07ap-10f, -0x1.ab0a4ap-11f, -0x1.5f5fc6p-12f,
                                    -0x1.1f2c4ep-13f, -0x1.c568bp-15f,  -0x1.619b08p-16f, -0x1.116136p-17f};
  static constexpr float kC2[16] = {0x1.d2ac88p-6f,  0x1.7cbfe6p-4f,  0x1.ef8cb2p-4f,  0x1.a984bcp-4f,
                                    0x1.2a8dcap-4f,  0x1.72e296p-5f,  0x1.9c40a4p-6f,  0x1.b22718p-7f,
                                    0x1.affe88p-8f,  0x1.9921f6p-9f,  0x1.77c21cp-10f, 0x1.4a9a7ep-11f,
                                    0x1.1ec2d6p-12f, 0x1.de6982p-14f, 0x1.8855cp-15f,  0x1.3d9f36p-16f};
  static constexpr float kC3[16] = {0x1.07e7a8p-4f,   0x1.4e50c6p-5f,   -0x1.33265p-12f,  -0x1.8fe5fap-6f,
                                    -0x1.e48ed2p-6f,  -0x1.952fecp-6f,  -0x1.15d5bcp-6f,  -0x1.5558f4p-7f,
                                    -0x1.8081aap-8f,  -0x1.94083ep-9f,  -0x1.95427ep-10f, -0x1.8177p-11f,
                                    -0x1.65dd88p-12f, -0x1.3da222p-13f, -0x1.13772ap-14f, -0x1.d53dcep-16f};
  static constexpr float kC4[16] = {-0x1.d21fep-8f,  -0x1.57edd8p-6f, -0x1.492e5cp-6f, -0x1.1cd26ap-7f,
                                    0x1.07a4b8p-10f, 0x1.6926a4p-8f,  0x1.910c3ap-8f,  0x1.4072p-8f,
                                    0x1.b160d6p-9f,  0x1.05f4c4p-9f,  0x1.25fceep-10f, 0x1.3395e6p-11f,
                                    0x1.3594c6p-12f, 0x1.274d46p-13f, 0x1.10f6f4p-14f, 0x1.ec49e4p-16f};
  static constexpr float kC5[16] = {-0x1.32e632p-7f,  -0x1.f6ba48p-9f,  0x1.06a194p-8f,   0x1.8e1f3ep-8f,
                                    0x1.0a6114p-8f,   0x1.6a92bap-10f,  -0x1.bda2dep-12f, -0x1.1f115ep-10f,
                                    -0x1.20d54p-10f,  -0x1.baaadp-11f,  -0x1.247c1p-11f,  -0x1.5c0deap-12f,
                                    -0x1.84608ep-13f, -0x1.94c08cp-14f, -0x1.93cb2ep-15f, -0x1.851304p-16f};
  static constexpr float kC6[16] = {0x1.29631ep-9f,   0x1.9a9d0cp-9f,  0x1.074cp-9f,     -0x1.3e6e5cp-12f,
                                    -0x1.53e354p-10f, -0x1.2dc17p-10f, -0x1.453454p-11f, -0x1.306c3ap-13f,
                                    0x1.c21866p-14f,  0x1.99125cp-13f, 0x1.6ca7e4p-13f,  0x1.0e7688p-13f,
                                    0x1.5a592p-14f,   0x1.96a4cap-15f, 0x1.bdfeacp-16f,  0x1.d0cd24p-17f};
};
/// The slope of x normal_cdf(x) at -a, likewise: error 2^-26, around its zero and its minimum 2^-28.7.
struct NearSlope {
  static constexpr float kMiddle[16] = {
      0x1.274p-3f,  0x1.142p-1f, 0x1.0128p+0f, 0x1.698p+0f,  0x1.c7a8p+0f, 0x1.0f58p+1f, 0x1.3724p+1f, 0x1.5cccp+1f,
      0x1.80a4p+1f, 0x1.a25p+1f, 0x1.c29p+1f,  0x1.e1f4p+1f, 0x1.ff84p+1f, 0x1.0e1ap+2f, 0x1.1c12p+2f, 0x1.298ap+2f};
  static constexpr float kC0[16] = {0x1.8b0646p-2f,   0x1.bdaabep-4f,  -0x1.59b4d2p-4f,  -0x1.07fe6ap-3f,
                                    -0x1.bae094p-4f,  -0x1.288f8p-4f,  -0x1.60461ep-5f,  -0x1.7e192ap-6f,
                                    -0x1.825fdap-7f,  -0x1.763df6p-8f, -0x1.5b089ap-9f,  -0x1.32d346p-10f,
                                    -0x1.0bcc88p-11f, -0x1.c54c9p-13f, -0x1.748a36p-14f, -0x1.2d3cfp-15f};
  static constexpr float kC1[16] = {-0x1.9017a2p-1f, -0x1.2ddb8ep-1f, -0x1.e8da08p-3f, -0x1.cafaccp-11f,
                                    0x1.879006p-4f,  0x1.aed634p-4f,  0x1.4cd85ap-4f,  0x1.b0d3a2p-5f,
                                    0x1.f6d942p-6f,  0x1.1010dep-6f,  0x1.14f762p-7f,  0x1.09b4e4p-8f,
                                    0x1.f1919ep-10f, 0x1.c08598p-11f, 0x1.865ad8p-12f, 0x1.4c78c4p-13f};
  static constexpr float kC2[16] = {0x1.cfdaeap-4f,  0x1.614a74p-2f,   0x1.7289bcp-2f,   0x1.aaf7b2p-3f,
                                    0x1.f0623ep-5f,  -0x1.69bb18p-6f,  -0x1.8b171ep-5f,  -0x1.745512p-5f,
                                    -0x1.0e4b5p-5f,  -0x1.562232p-6f,  -0x1.89a298p-7f,  -0x1.a211ap-8f,
                                    -0x1.a9ee28p-9f, -0x1.9d5e5ap-10f, -0x1.803748p-11f, -0x1.5b042p-12f};
  static constexpr float kC3[16] = {0x1.03bfc2p-2f,  0x1.e26c1ap-4f,  -0x1.504136p-4f, -0x1.2c8ec4p-3f,
                                    -0x1.c6c73cp-4f, -0x1.a237a2p-5f, -0x1.15f7a6p-7f, 0x1.7cc688p-7f,
                                    0x1.0a395cp-6f,  0x1.c47286p-7f,  0x1.3a8p-7f,     0x1.8095e8p-8f,
                                    0x1.b50b4p-9f,   0x1.d0a88ep-10f, 0x1.d331eap-11f, 0x1.c3d186p-12f};
  static constexpr float kC4[16] = {-0x1.58d61ap-5f,  -0x1.d892f6p-4f,  -0x1.470c8cp-4f,  -0x1.7fac48p-12f,
                                    0x1.52a326p-5f,   0x1.56f5ecp-5f,   0x1.a0c622p-6f,   0x1.3591aap-7f,
                                    -0x1.dc2f72p-14f, -0x1.f1d312p-9f,  -0x1.1370cap-8f,  -0x1.afa188p-9f,
                                    -0x1.20b82cp-9f,  -0x1.5b7b0ap-10f, -0x1.824a5cp-11f, -0x1.962f96p-12f};
  static constexpr float kC5[16] = {-0x1.c5723ep-5f, -0x1.a72804p-7f,  0x1.268faep-5f,  0x1.1774fp-5f,
                                    0x1.4c9308p-7f,  -0x1.df8beep-8f,  -0x1.856efcp-7f, -0x1.29ce02p-7f,
                                    -0x1.2cabfep-8f, -0x1.51253ep-10f, 0x1.a0340ap-12f, 0x1.ead85cp-11f,
                                    0x1.d30288p-11f, 0x1.5a7cd8p-11f,  0x1.bde11ap-12f, 0x1.067064p-12f};
  static constexpr float kC6[16] = {0x1.fca528p-8f,   0x1.7173p-6f,     0x1.1c23eep-7f,   -0x1.143018p-7f,
                                    -0x1.677fcap-7f,  -0x1.60566p-8f,   0x1.1884f8p-12f,  0x1.495512p-9f,
                                    0x1.43864p-9f,    0x1.92b2f8p-10f,  0x1.5b0cd8p-11f,  0x1.cb31bcp-14f,
                                    -0x1.1821f8p-13f, -0x1.8d945ap-13f, -0x1.50faaep-13f, -0x1.dd352p-14f};
};

/// The normal distribution's lower tail far from 0, normal_cdf(-a) = e^(-a^2 / 2) F(a), and the slope of x
/// normal_cdf(x) at -a, e^(-a^2 / 2) S(a), S(a) = F(a) - a / sqrt(2 pi). F falls slowly. It is a polynomial in d = a -
/// m in each of four intervals, whose number is a polynomial's integer part: their middles m are such that both
/// constant terms are nearly floats (2^-27), so that F is rounded once, when small terms are added.
struct FarTail {
  static constexpr float kLimit = 14.8f, kSquared = 0, kLinear = 0x1.8f5c28p-2f, kConstant = -0x1.da3d7p+0f;
  // [4.75, 7.31), [7.31, 9.88), [9.88, 12.44), [12.44, 14.8]; error 2^-25.9, beyond the first interval 2^-28.7
  static constexpr float kMiddle[4] = {0x1.821p+2f, 0x1.1228p+3f, 0x1.64ap+3f, 0x1.b458p+3f};
  static constexpr float kF0[4] = {0x1.07fcd6p-4f, 0x1.7876f2p-5f, 0x1.22f1a2p-5f, 0x1.dccf9p-6f};
  static constexpr float kF1[4] = {-0x1.4d131ap-7f, -0x1.568c6ap-8f, -0x1.9b3b7ap-9f, -0x1.14cf8p-9f};
  static constexpr float kC2[4] = {0x1.9ae1bap-10f, 0x1.33e47cp-11f, 0x1.20710ep-12f, 0x1.3fc04p-13f};
  static constexpr float kC3[4] = {-0x1.f038cap-13f, -0x1.117bccp-14f, -0x1.91a7dep-16f, -0x1.6f7caap-17f};
  static constexpr float kC4[4] = {0x1.25560ep-15f, 0x1.e026dep-18f, 0x1.15a4eep-19f, 0x1.a50532p-21f};
  static constexpr float kC5[4] = {-0x1.54dffap-18f, -0x1.a16846p-21f, -0x1.7cfd84p-23f, -0x1.deab46p-25f};
  static constexpr float kC6[4] = {0x1.9db3cep-21f, 0x1.7292cep-24f, 0x1.071816p-26f, 0x1.c551f4p-29f};
  static constexpr float kC7[4] = {-0x1.cbf4e6p-24f, -0x1.30d9a6p-27f, -0x1.66a7e8p-30f, -0x1.2a91dep-32f};
  static constexpr float kS0[4] = {-0x1.2bc8ap+1f, -0x1.af9b9ap+1f, -0x1.1a45c8p+2f, -0x1.5a4a16p+2f};
  static constexpr float kS1[4] = {-0x1.a2ececp-2f, -0x1.9dde84p-2f, -0x1.9bbacap-2f, -0x1.9aadf2p-2f};
};

/// Returns the number of a's interval, with a fraction of 8 bits, and 1.5 2^15.
template <class Tail>
VESTA_INLINE Vec<float> place_in(Vec<float> a) {
  const Vec<float> slope = mul_add(a, Vec<float>(Tail::kSquared), Vec<float>(Tail::kLinear));
  return mul_add(a, slope, Vec<float>(0x1.8p15f + Tail::kConstant));
}

/// Turns vectors a in [0, NearTail::kLimit) into normal_cdf(-a) or the slope of x normal_cdf(x) at -a, rounded once but
/// for small terms. The steps of several vectors alternate: a core whose window holds some 60 steps that wait, as
/// Zen 3's does, finds more to do. Lanes beyond the limit hold anything.
template <bool is_slope, int K>
VESTA_INLINE void near_tails(Vec<float> (&a)[K]) {
  using V = Vec<float>;
  using Tail = std::conditional_t<is_slope, NearSlope, NearTail>;
#define VESTA_EACH _Pragma("GCC unroll 4") for (int k = 0; k < K; ++k)
  V d[K], d2[K], p[K], p4[K], p2[K];
  V::Bits index[K];
  VESTA_EACH d[k] = mul_add(a[k], V(NearTail::kSquared), V(NearTail::kLinear));
  VESTA_EACH index[k] = mul_add(a[k], d[k], V(kExpMagic)).bits();
  VESTA_EACH d[k] = a[k] - pick(Tail::kMiddle, index[k]);
  VESTA_EACH p[k] = mul_add(d[k], pick(Tail::kC6, index[k]), pick(Tail::kC5, index[k]));
  VESTA_EACH p4[k] = mul_add(d[k], pick(Tail::kC4, index[k]), pick(Tail::kC3, index[k]));
  VESTA_EACH d2[k] = d[k] * d[k];
  VESTA_EACH p2[k] = mul_add(d[k], pick(Tail::kC2, index[k]), pick(Tail::kC1, index[k]));
  VESTA_EACH p[k] = mul_add(d2[k], p[k], p4[k]);
  VESTA_EACH p[k] = mul_add(d2[k], p[k], p2[k]);
  VESTA_EACH a[k] = mul_add(d[k], p[k], pick(Tail::kC0, index[k]));
#undef VESTA_EACH
}

/// Returns the same for a in [4.75, 14.8], as e^(-a^2 / 2) times a polynomial F or S.
template <bool is_slope>
VESTA_INLINE Vec<float> far_tail(Vec<float> a) {
  using V = Vec<float>;
  a = lower_or_first(a, V(FarTail::kLimit));  // there both are 0
  const V::Bits index = place_in<FarTail>(a).bits() >> 8;  // the bits below are the fraction
  // e^(-a^2 / 2) = 2^n (1 + c), and the rounding error of the square counts; r is twice the exponent that is left.
  // n is at least -158: the result is raised, and what underflows is rounded once, when it is lowered.
  const V magic(kExpMagic + 127 + 64), square = a * a, shifted = mul_add(square, V(-0x1.715476p-1f), magic);
  const V d = a - pick(FarTail::kMiddle, index), d2 = d * d, n = shifted - magic;
  const V r = mul_add(n, V(-2 * kLogHigh), -square) + mul_add(n, V(-2 * kLogLow), -square_error(a, square));
  V p = mul_add(d, pick(FarTail::kC7, index), pick(FarTail::kC6, index));
  p = mul_add(d2, p, mul_add(d, pick(FarTail::kC5, index), pick(FarTail::kC4, index)));
  p = mul_add(d2, p, mul_add(d, pick(FarTail::kC3, index), pick(FarTail::kC2, index)));
  p = mul_add(d, p, pick(is_slope ? FarTail::kS1 : FarTail::kF1, index));
  // c = r (1/2 + r q(r)), with exp_fraction()'s coefficients
  const V q = horner(r, 0.5f, 0x1.fffffcp-4f, 0x1.555492p-6f, 0x1.5558f2p-9f, 0x1.1239e2p-12f, 0x1.6a2432p-16f);
  // (1 + c) (first + d p), rounded once but for small terms
  const V first = pick(is_slope ? FarTail::kS0 : FarTail::kF0, index);
  const V whole = first + mul_add(d, p, r * q * mul_add(d, p, first));
  return whole * V::from_bits(shifted.bits() << 23) * V(0x1p-64f);  // the top of the magic number is shifted out
}

/// Returns the same for any a >= 0; a lane's bits do not depend on the others being near.
template <bool is_slope>
VESTA_INLINE Vec<float> normal_tail(Vec<float> a) {
  const Mask<float> near = a < Vec<float>(NearTail::kLimit);
  Vec<float> tail[1] = {a};
  near_tails<is_slope>(tail);
  if (all(near)) [[likely]]
    return tail[0];
  return select(near, tail[0], far_tail<is_slope>(a));
}

/// Returns normal_cdf(x), or the slope of x normal_cdf(x), given that of -|x|.
VESTA_INLINE Vec<float> of_tail(Vec<float> x, Vec<float> tail) {
  return select(x > Vec<float>(0.0f), Vec<float>(1.0f) - tail, tail);
}

/// Computes the standard normal distribution function, erfc(-x / sqrt 2) / 2, with the same relative accuracy in the
/// lower tail (rounding x / sqrt 2 would cost x^2 ulp), as 1 - normal_cdf(-x) for x > 0. Error below 1.8 ulp.
/// Exact gelu is x normal_cdf(x), at most 2 floats from the one next to the exact value.
VESTA_INLINE Vec<float> normal_cdf(Vec<float> x) { return of_tail(x, normal_tail<false>(abs(x))); }

/// Computes the slope of x normal_cdf(x), normal_cdf(x) + x density(x), as 1 - that of -x for x > 0; NaN for
/// infinities, as in PyTorch's sum. Error below 1 ulp for x > 1, 2^-23 down to -1, beyond 3 ulp.
VESTA_INLINE Vec<float> normal_slope(Vec<float> x) {
  const Vec<float> a = abs(x);
  return select(a == Vec<float>(__builtin_inff()), x - x, of_tail(x, normal_tail<true>(a)));
}

}  // namespace vesta::cpu::VESTA_ISA_NS
