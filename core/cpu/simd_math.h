// The functions of Vec<float> and Vec<double>. Included by simd.h. The names are those of core/ops/math.h.
//
// Most are SLEEF's: the variants with finz_ in their names (FMA; equal bits for AVX2 and AVX-512) or cinz_ (none; the
// baseline), which promise the same result on every machine. u10 stands for an error below 1.0 units in the last
// place. Where SLEEF departs from C's rules (an overflow too early, a sign of zero), the wrapper here repairs it and
// says so.
#pragma once

#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/simd_float.h>

#include <sleef.h>

#include <utility>

namespace vesta::cpu::VESTA_ISA_NS {

#if defined(VESTA_SIMD_AVX512)
#define VESTA_SLEEF_F(name, ulp) Sleef_finz_##name##f16_##ulp##avx512f
#define VESTA_SLEEF_D(name, ulp) Sleef_finz_##name##d8_##ulp##avx512f
using NativeF = __m512;
using NativeD = __m512d;
#elif defined(VESTA_SIMD_AVX2)
#define VESTA_SLEEF_F(name, ulp) Sleef_finz_##name##f8_##ulp##avx2
#define VESTA_SLEEF_D(name, ulp) Sleef_finz_##name##d4_##ulp##avx2
using NativeF = __m256;
using NativeD = __m256d;
#elif defined(__SSE4_1__)
#define VESTA_SLEEF_F(name, ulp) Sleef_cinz_##name##f4_##ulp##sse4
#define VESTA_SLEEF_D(name, ulp) Sleef_cinz_##name##d2_##ulp##sse4
using NativeF = __m128;
using NativeD = __m128d;
#else
#define VESTA_SLEEF_F(name, ulp) Sleef_cinz_##name##f4_##ulp##sse2
#define VESTA_SLEEF_D(name, ulp) Sleef_cinz_##name##d2_##ulp##sse2
using NativeF = __m128;
using NativeD = __m128d;
#endif

/// SLEEF's functions as they are, one static member each, where a wrapper of the same name repairs them.
namespace sleef {
#define VESTA_SLEEF1(name, ulp)                                                                                 \
  VESTA_INLINE Vec<float> name(Vec<float> x) {                                                                  \
    return Vec<float>((Vec<float>::Raw)VESTA_SLEEF_F(name, ulp)((NativeF)x.raw));                               \
  }                                                                                                             \
  VESTA_INLINE Vec<double> name(Vec<double> x) {                                                                \
    return Vec<double>((Vec<double>::Raw)VESTA_SLEEF_D(name, ulp)((NativeD)x.raw));                             \
  }
#define VESTA_SLEEF2(name, ulp)                                                                                 \
  VESTA_INLINE Vec<float> name(Vec<float> a, Vec<float> b) {                                                    \
    return Vec<float>((Vec<float>::Raw)VESTA_SLEEF_F(name, ulp)((NativeF)a.raw, (NativeF)b.raw));               \
  }                                                                                                             \
  VESTA_INLINE Vec<double> name(Vec<double> a, Vec<double> b) {                                                 \
    return Vec<double>((Vec<double>::Raw)VESTA_SLEEF_D(name, ulp)((NativeD)a.raw, (NativeD)b.raw));             \
  }
VESTA_SLEEF1(exp, u10)
VESTA_SLEEF1(exp2, u10)
VESTA_SLEEF1(expm1, u10)
VESTA_SLEEF1(log, u10)
VESTA_SLEEF1(log2, u10)
VESTA_SLEEF1(log10, u10)
VESTA_SLEEF1(log1p, u10)
VESTA_SLEEF1(cbrt, u10)
VESTA_SLEEF1(sin, u10)
VESTA_SLEEF1(cos, u10)
VESTA_SLEEF1(tan, u10)
VESTA_SLEEF1(asin, u10)
VESTA_SLEEF1(acos, u10)
VESTA_SLEEF1(atan, u10)
VESTA_SLEEF1(sinh, u10)
VESTA_SLEEF1(cosh, u10)
VESTA_SLEEF1(tanh, u10)
VESTA_SLEEF1(asinh, u10)
VESTA_SLEEF1(acosh, u10)
VESTA_SLEEF1(atanh, u10)
VESTA_SLEEF1(erf, u10)
VESTA_SLEEF1(erfc, u15)
VESTA_SLEEF1(lgamma, u10)
VESTA_SLEEF2(pow, u10)
VESTA_SLEEF2(atan2, u10)
VESTA_SLEEF2(hypot, u05)
VESTA_SLEEF2(fmod, )
#if !defined(VESTA_SIMD_AVX512) && !defined(__SSE4_1__)
VESTA_SLEEF1(floor, )
VESTA_SLEEF1(ceil, )
VESTA_SLEEF1(trunc, )
VESTA_SLEEF1(rint, )
#endif
#undef VESTA_SLEEF1
#undef VESTA_SLEEF2
}  // namespace sleef

// ---- roots and rounding ---------------------------------------------------------------------------------------------

#if defined(VESTA_SIMD_AVX512)
// The masked forms with a full mask are the plain instructions; GCC 12 warns inside the plain intrinsics.
#define VESTA_SIMD_SQRT_PS(x) _mm512_maskz_sqrt_ps(0xffff, x)
#define VESTA_SIMD_SQRT_PD(x) _mm512_maskz_sqrt_pd(0xff, x)
#define VESTA_SIMD_ROUND_PS(x, mode) _mm512_maskz_roundscale_ps(0xffff, x, mode)
#define VESTA_SIMD_ROUND_PD(x, mode) _mm512_maskz_roundscale_pd(0xff, x, mode)
#elif defined(VESTA_SIMD_AVX2)
#define VESTA_SIMD_SQRT_PS(x) _mm256_sqrt_ps(x)
#define VESTA_SIMD_SQRT_PD(x) _mm256_sqrt_pd(x)
#define VESTA_SIMD_ROUND_PS(x, mode) _mm256_round_ps(x, mode)
#define VESTA_SIMD_ROUND_PD(x, mode) _mm256_round_pd(x, mode)
#else
#define VESTA_SIMD_SQRT_PS(x) _mm_sqrt_ps(x)
#define VESTA_SIMD_SQRT_PD(x) _mm_sqrt_pd(x)
#define VESTA_SIMD_ROUND_PS(x, mode) _mm_round_ps(x, mode)
#define VESTA_SIMD_ROUND_PD(x, mode) _mm_round_pd(x, mode)
#endif

VESTA_INLINE Vec<float> sqrt(Vec<float> x) { return Vec<float>((Vec<float>::Raw)VESTA_SIMD_SQRT_PS((NativeF)x.raw)); }
VESTA_INLINE Vec<double> sqrt(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)VESTA_SIMD_SQRT_PD((NativeD)x.raw));
}

#if defined(VESTA_SIMD_AVX512) || defined(__SSE4_1__)
#define VESTA_SIMD_ROUNDING(name, sleef_name, mode)                                               \
  VESTA_INLINE Vec<float> name(Vec<float> x) {                                                    \
    return Vec<float>((Vec<float>::Raw)VESTA_SIMD_ROUND_PS((NativeF)x.raw, mode));                \
  }                                                                                               \
  VESTA_INLINE Vec<double> name(Vec<double> x) {                                                  \
    return Vec<double>((Vec<double>::Raw)VESTA_SIMD_ROUND_PD((NativeD)x.raw, mode));              \
  }
#else
#define VESTA_SIMD_ROUNDING(name, sleef_name, mode)                              \
  VESTA_INLINE Vec<float> name(Vec<float> x) { return sleef::sleef_name(x); }    \
  VESTA_INLINE Vec<double> name(Vec<double> x) { return sleef::sleef_name(x); }
#endif
VESTA_SIMD_ROUNDING(floor, floor, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
VESTA_SIMD_ROUNDING(ceil, ceil, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
VESTA_SIMD_ROUNDING(trunc, trunc, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
/// Rounds to an integer, ties to even.
VESTA_SIMD_ROUNDING(round, rint, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#undef VESTA_SIMD_ROUNDING
#undef VESTA_SIMD_ROUND_PS
#undef VESTA_SIMD_ROUND_PD
#undef VESTA_SIMD_SQRT_PS
#undef VESTA_SIMD_SQRT_PD

/// Computes 1 / sqrt(x), each step correctly rounded.
template <class T>
VESTA_INLINE Vec<T> rsqrt(Vec<T> x) {
  return Vec<T>(T(1)) / sqrt(x);
}

// ---- SLEEF's functions as they are ----------------------------------------------------------------------------------

#define VESTA_SIMD_TAKE1(name)                                              \
  VESTA_INLINE Vec<float> name(Vec<float> x) { return sleef::name(x); }     \
  VESTA_INLINE Vec<double> name(Vec<double> x) { return sleef::name(x); }
VESTA_SIMD_TAKE1(exp2)
VESTA_SIMD_TAKE1(log2)
VESTA_SIMD_TAKE1(log10)
VESTA_SIMD_TAKE1(cbrt)
VESTA_SIMD_TAKE1(sin)
VESTA_SIMD_TAKE1(cos)
VESTA_SIMD_TAKE1(tan)
VESTA_SIMD_TAKE1(asin)
VESTA_SIMD_TAKE1(acos)
VESTA_SIMD_TAKE1(atan)
VESTA_SIMD_TAKE1(atanh)
#undef VESTA_SIMD_TAKE1
// Those of float are in simd_float.h.
VESTA_INLINE Vec<double> expm1(Vec<double> x) { return sleef::expm1(x); }
VESTA_INLINE Vec<double> log(Vec<double> x) { return sleef::log(x); }
VESTA_INLINE Vec<double> tanh(Vec<double> x) { return sleef::tanh(x); }
VESTA_INLINE Vec<double> erf(Vec<double> x) { return sleef::erf(x); }
VESTA_INLINE Vec<double> erfc(Vec<double> x) { return sleef::erfc(x); }
VESTA_INLINE Vec<float> atan2(Vec<float> a, Vec<float> b) { return sleef::atan2(a, b); }
VESTA_INLINE Vec<double> atan2(Vec<double> a, Vec<double> b) { return sleef::atan2(a, b); }
VESTA_INLINE Vec<float> hypot(Vec<float> a, Vec<float> b) { return sleef::hypot(a, b); }
VESTA_INLINE Vec<double> hypot(Vec<double> a, Vec<double> b) { return sleef::hypot(a, b); }

// ---- SLEEF's functions with a repaired range ------------------------------------------------------------------------
//
// Note [Repairs]
// Several of SLEEF's functions give infinity (fmod: NaN) where the result is still a number. The lanes concerned are
// rare, so a repair is computed only when a vector holds one; a lane's bits depend on that lane alone either way.

/// Computes e^x. SLEEF overflows at 709.78271115, 1.8e-6 too early. What gives 0 is not multiplied down to it, as in
/// exp of floats.
VESTA_INLINE Vec<double> exp(Vec<double> x) {
  const Vec<double> zero(0.0);
  const Mask<double> none = x < Vec<double>(-746.0);
  const Vec<double> y = select(none, zero, sleef::exp(select(none, zero, x)));
  const Mask<double> late = (x > Vec<double>(709.782711)) & (x < Vec<double>(709.782713));
  if (!any(late)) [[likely]]
    return y;
  return select(late, sleef::exp(x - Vec<double>(1.0)) * Vec<double>(2.71828182845904523536), y);
}

/// Computes log(1 + x). SLEEF overflows at 1e38 and 1e307.
template <class T>
VESTA_INLINE Vec<T> log1p(Vec<T> x) {
  const Vec<T> y = sleef::log1p(x);
  const Mask<T> large = x > Vec<T>(T(1e30));
  if (!any(large)) [[likely]]
    return y;
  return select(large, log(x), y);
}

/// Computes sinh x. SLEEF overflows where e^|x| does.
template <class T>
VESTA_INLINE Vec<T> sinh(Vec<T> x) {
  const Vec<T> y = sleef::sinh(x);
  const Mask<T> large = abs(x) > Vec<T>(sizeof(T) == 4 ? T(88) : T(709));
  if (!any(large)) [[likely]]
    return y;
  const Vec<T> root = exp(abs(x) * Vec<T>(T(0.5)));
  return select(large, copysign(root * Vec<T>(T(0.5)) * root, x), y);
}
/// Computes cosh x. SLEEF overflows where e^|x| does.
template <class T>
VESTA_INLINE Vec<T> cosh(Vec<T> x) {
  const Vec<T> y = sleef::cosh(x);
  const Mask<T> large = abs(x) > Vec<T>(sizeof(T) == 4 ? T(88) : T(709));
  if (!any(large)) [[likely]]
    return y;
  const Vec<T> root = exp(abs(x) * Vec<T>(T(0.5)));
  return select(large, root * Vec<T>(T(0.5)) * root, y);
}
/// Computes asinh x. SLEEF overflows where x^2 does; from there on it is log 2 |x|.
template <class T>
VESTA_INLINE Vec<T> asinh(Vec<T> x) {
  const Vec<T> y = sleef::asinh(x);
  const Mask<T> large = abs(x) > Vec<T>(T(1e15));
  if (!any(large)) [[likely]]
    return y;
  return select(large, copysign(log(abs(x)) + Vec<T>(T(0.693147180559945309417)), x), y);
}
/// Computes acosh x. SLEEF overflows where x^2 does; from there on it is log 2 x.
template <class T>
VESTA_INLINE Vec<T> acosh(Vec<T> x) {
  const Vec<T> y = sleef::acosh(x);
  const Mask<T> large = x > Vec<T>(T(1e15));
  if (!any(large)) [[likely]]
    return y;
  return select(large, log(x) + Vec<T>(T(0.693147180559945309417)), y);
}
/// Computes log |gamma(x)|. SLEEF's float overflows at 4.03e36; from 1e30 on Stirling's x (log x - 1) is exact enough.
template <class T>
VESTA_INLINE Vec<T> lgamma(Vec<T> x) {
  const Vec<T> y = sleef::lgamma(x);
  const Mask<T> large = x > Vec<T>(T(1e30));
  if (!any(large)) [[likely]]
    return y;
  return select(large, x * (log(x) - Vec<T>(T(1))), y);
}

/// Computes a^b by C's rules. SLEEF's double overflows 1.8e-6 of the result too early: there |a|^(b/2) is squared.
template <class T>
VESTA_INLINE Vec<T> general_pow(Vec<T> a, Vec<T> b) {
  const Vec<T> y = sleef::pow(a, b);
  const Mask<T> infinite = isinf(y) & isfinite(a) & isfinite(b) & (a != Vec<T>(T(0)));
  if (!any(infinite)) [[likely]]
    return y;
  const Vec<T> root = sleef::pow(abs(a), b * Vec<T>(T(0.5)));
  return select(infinite, copysign(root * root, y), y);
}

/// A number as the sum of two: `high`, and `low`, which holds what rounding took from it.
template <class T>
struct TwoPart {
  Vec<T> high, low;
};

/// Multiplies; the dropped part is below 2^-44 (float) or 2^-102 (double) of the product.
template <class T>
VESTA_INLINE TwoPart<T> operator*(TwoPart<T> a, TwoPart<T> b) {
  const Vec<T> high = a.high * b.high;
  return {high, mul_add(a.high, b.low, mul_add(a.low, b.high, mul_add(a.high, b.high, -high)))};
}

/// Returns a^n for a whole n from 1 on, by repeated squares.
template <int n, class T>
VESTA_INLINE TwoPart<T> product_of(Vec<T> a) {
  if constexpr (n == 1) {
    return {a, Vec<T>(T(0))};
  } else if constexpr (n == 2) {
    const Vec<T> square = a * a;
    return {square, mul_add(a, a, -square)};
  } else if constexpr (n % 2 == 0) {
    const TwoPart<T> half = product_of<n / 2>(a);
    return half * half;
  } else {
    const TwoPart<T> rest = product_of<n - 1>(a);
    const Vec<T> high = rest.high * a;
    return {high, mul_add(rest.low, a, mul_add(rest.high, a, -high))};
  }
}

/// Returns a^n for a whole n from 2 on, rounded once from what product_of() knows.
template <int n, class T>
VESTA_INLINE Vec<T> whole_power(Vec<T> a) {
  const TwoPart<T> p = product_of < n % 2 == 0 ? n / 2 : n - 1 > (a);
  if constexpr (n % 2 == 0) return mul_add(p.high, p.high, (p.high + p.high) * p.low);
  else return mul_add(p.high, a, p.low * a);
}

/// An exponent of halves that is known when the code is compiled: a power that is products, a quotient and a root.
template <int halves>
struct Exponent {
  static constexpr int whole = halves / 2, magnitude = whole < 0 ? -whole : whole;
  static constexpr bool is_root = halves % 2 != 0;
  // Products and reciprocal roots carry their rounding error by a fused multiply-add.
  static constexpr bool exists = halves == 1 || halves == 2 || halves == 4 || halves == -2 || kHasFma;
  static constexpr double value = halves * 0.5;

  /// Returns where power() holds: all intermediate results are finite and, of quotients and roots, normal.
  template <class T>
  VESTA_INLINE static Mask<T> holds(Vec<T> a) {
    constexpr int range = sizeof(T) == 4 ? 126 : 1022;
    if constexpr (halves == 1) {
      return ~isnan(a);
    } else if constexpr (is_root) {
      return (a >= Vec<T>(T(sizeof(T) == 4 ? 0x1p-100 : 0x1p-900))) & isfinite(a);
    } else if constexpr (whole == 1 || whole == 2 || whole == -1) {
      return Mask<T>(true);
    } else {
      const Vec<T> largest(two_to<T>(range / magnitude));
      if constexpr (whole > 0) return abs(a) <= largest;
      else return (abs(a) <= largest) & (abs(a) >= Vec<T>(T(1)) / largest);
    }
  }

  /// Computes a^value. Squares, -1 and 1/2 are correctly rounded; the error of the others is below 0.51 ulp, where the
  /// result is normal.
  template <class T>
  VESTA_INLINE static Vec<T> power(Vec<T> a) {
    const Vec<T> one(T(1));
    if constexpr (halves == 1) {  // C's pow(-0, 1/2) is 0 and its pow(-inf, 1/2) is inf
      const Vec<T> infinity(std::numeric_limits<T>::infinity());
      return select(a == -infinity, infinity, sqrt(a) + Vec<T>(T(0)));
    } else if constexpr (is_root) {  // of a = s^2 + rest: 1 / sqrt a = (1 - rest / 2a) / s
      const Vec<T> s = sqrt(a), y = one / s;
      const Vec<T> rest = mul_add(-s, s, a) * y * y * Vec<T>(T(0.5));
      return mul_add(y, mul_add(-y, s, one) - rest, y);
    } else if constexpr (whole == 1) {
      return a;
    } else if constexpr (whole == 2) {
      return a * a;
    } else if constexpr (whole == -1) {
      return one / a;
    } else if constexpr (exists) {
      if constexpr (whole > 0) return whole_power<whole>(a);
      const TwoPart<T> p = product_of<magnitude>(a);
      const Vec<T> y = one / p.high;
      return mul_add(y, mul_add(-y, p.low, mul_add(-y, p.high, one)), y);
    }
    return a;
  }

 private:
  template <class T>
  static constexpr T two_to(int n) {
    T power = 1;
    for (; n > 0; --n) power *= 2;
    return power;
  }
};

/// Calls f with an Exponent for each of the exponents, in halves, that are products and roots.
template <class F>
VESTA_INLINE void each_exponent(F f) {
  [&]<int... halves>(std::integer_sequence<int, halves...>) __attribute__((always_inline)) {
    (f(Exponent<halves>{}), ...);
  }(std::integer_sequence<int, 4, 6, 8, 10, 12, 14, 16, -2, -4, -6, 1, -1, 2>{});
}

/// Computes a^b for exponents of any kind; a lane's bits depend on that lane alone.
template <class T>
[[gnu::noinline]] static Vec<T> mixed_pow(Vec<T> a, Vec<T> b) {
  Vec<T> y = a;
  Mask<T> done(false);
  each_exponent([&]<class E>(E) __attribute__((always_inline)) {
    if constexpr (E::exists) {
      const Mask<T> here = b == Vec<T>(T(E::value));
      if (!any(here)) return;
      const Mask<T> easy = here & E::holds(a);
      y = select(easy, E::power(a), y), done = done | easy;
    }
  });
  if (all(done)) return y;
  return select(done, y, general_pow(a, b));
}

/// Computes a^b by C's rules.
template <class T>
VESTA_INLINE Vec<T> pow(Vec<T> a, Vec<T> b) {
  // A number as exponent that the compiler knows, because the loop was compiled for it (Pow::exponents): its products
  // alone, which run as fast as memory allows. The values are those of mixed_pow.
  const bool same = [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return ((b.raw[I] == b.raw[0]) & ...);
  }(std::make_integer_sequence<int, Vec<T>::N>{});
  if (__builtin_constant_p(b.raw[0]) && __builtin_constant_p(same) && same) {
    Vec<T> y = a;
    bool done = false;
    each_exponent([&]<class E>(E) __attribute__((always_inline)) {
      if constexpr (E::exists) {
        if (b.raw[0] == T(E::value) && all(E::holds(a))) y = E::power(a), done = true;
      }
    });
    if (done) [[likely]]
      return y;
  }
  return mixed_pow(a, b);
}

/// Computes the remainder of a / b with the sign of a, exactly. SLEEF does not compute quotients beyond its loop; such
/// lanes go to the C library one by one.
template <class T>
VESTA_INLINE Vec<T> fmod(Vec<T> a, Vec<T> b) {
  Vec<T> y = sleef::fmod(a, b);
  const Mask<T> easy = abs(a) <= abs(b) * Vec<T>(sizeof(T) == 4 ? T(0x1p60) : T(0x1p200));
  const Mask<T> hard = isfinite(a) & ~easy;
  if (!any(hard)) [[likely]]
    return y;
  for (int i = 0; i < Vec<T>::N; ++i) {
    if (!hard[i]) continue;
    if constexpr (sizeof(T) == 4) y.raw[i] = __builtin_fmodf(a[i], b[i]);
    if constexpr (sizeof(T) == 8) y.raw[i] = __builtin_fmod(a[i], b[i]);
  }
  return y;
}

// ---- functions made of others ---------------------------------------------------------------------------------------

/// Computes 1 / (1 + e^-x), for negative x as e^x / (1 + e^x), so that nothing overflows and tails keep their accuracy.
/// Error below 2.5 ulp.
template <class T>
VESTA_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> one(T(1)), e = exp(-abs(x));
  return select(x < Vec<T>(T(0)), e, one) / (one + e);
}

/// Returns the rounding error of a * b: a * b - product, exactly (barring overflow).
VESTA_INLINE Vec<double> product_error(Vec<double> a, Vec<double> b, Vec<double> product) {
  if constexpr (kHasFma) {
    return mul_add(a, b, -product);
  } else {  // Dekker's product of halves
    const Vec<double> splitter(0x1.0000002p27);
    const Vec<double> wide_a = splitter * a, wide_b = splitter * b;
    const Vec<double> a1 = wide_a - (wide_a - a), b1 = wide_b - (wide_b - b), a2 = a - a1, b2 = b - b1;
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
  }
}

/// Computes the standard normal distribution function, erfc(y) / 2 at y = -x / sqrt 2. Rounding y would cost x^2 ulp in
/// the lower tail: erfc there is multiplied by 1 - 2 y error, its logarithm's slope.
VESTA_INLINE Vec<double> normal_cdf(Vec<double> x) {
  const Vec<double> limited = lower_or_first(higher_or_first(x, Vec<double>(-40.0)), Vec<double>(40.0));
  const Vec<double> root(-0x1.6a09e667f3bcdp-1), root_rest(0x1.bdd3413b26456p-55);  // -sqrt(1/2) = root + root_rest
  const Vec<double> y = limited * root;
  const Vec<double> error = product_error(limited, root, y) + limited * root_rest;
  const Vec<double> slope = Vec<double>(-2.0) * higher_or_first(y, Vec<double>(0.0));
  const Vec<double> tail = erfc(y);
  return Vec<double>(0.5) * (tail + tail * (slope * error));
}

/// Computes the slope of x normal_cdf(x).
VESTA_INLINE Vec<double> normal_slope(Vec<double> x) {
  const Vec<double> density = Vec<double>(0.3989422804014327) * exp(x * x * Vec<double>(-0.5));  // 1 / sqrt(2 pi)
  return Vec<double>(0.5) * erfc(x * Vec<double>(-0.7071067811865476)) + x * density;
}

#undef VESTA_SLEEF_F
#undef VESTA_SLEEF_D

}  // namespace vesta::cpu::VESTA_ISA_NS
