// The functions of Vec<float> and Vec<double>. Included by simd.h. The names are those of core/ops/math.h.
//
// Most are SLEEF's: the variants with finz_ in their names (FMA; equal bits for AVX2 and AVX-512) or cinz_ (none; the
// baseline), which promise the same result on every machine. u10 stands for an error below 1.0 units in the last place.
// Where SLEEF leaves C's rules (an overflow too early, a sign of zero), the wrapper here repairs it and says so.
#pragma once

#include <vesta/core/cpu/simd.h>

#include <sleef.h>

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

/// Holds SLEEF's functions as they come, one static member each, where a wrapper of the same name repairs them.
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
#define VESTA_SIMD_PREFIX(name) _mm512_##name
#define VESTA_SIMD_ROUND_PS(x, mode) _mm512_roundscale_ps(x, mode)
#define VESTA_SIMD_ROUND_PD(x, mode) _mm512_roundscale_pd(x, mode)
#elif defined(VESTA_SIMD_AVX2)
#define VESTA_SIMD_PREFIX(name) _mm256_##name
#define VESTA_SIMD_ROUND_PS(x, mode) _mm256_round_ps(x, mode)
#define VESTA_SIMD_ROUND_PD(x, mode) _mm256_round_pd(x, mode)
#else
#define VESTA_SIMD_PREFIX(name) _mm_##name
#define VESTA_SIMD_ROUND_PS(x, mode) _mm_round_ps(x, mode)
#define VESTA_SIMD_ROUND_PD(x, mode) _mm_round_pd(x, mode)
#endif

VESTA_INLINE Vec<float> sqrt(Vec<float> x) {
  return Vec<float>((Vec<float>::Raw)VESTA_SIMD_PREFIX(sqrt_ps)((NativeF)x.raw));
}
VESTA_INLINE Vec<double> sqrt(Vec<double> x) {
  return Vec<double>((Vec<double>::Raw)VESTA_SIMD_PREFIX(sqrt_pd)((NativeD)x.raw));
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
#undef VESTA_SIMD_PREFIX

/// Computes 1 / sqrt(x), each step correctly rounded.
template <class T>
VESTA_INLINE Vec<T> rsqrt(Vec<T> x) {
  return Vec<T>(T(1)) / sqrt(x);
}

// ---- SLEEF as it is -------------------------------------------------------------------------------------------------

#define VESTA_SIMD_TAKE1(name) \
  VESTA_INLINE Vec<float> name(Vec<float> x) { return sleef::name(x); } \
  VESTA_INLINE Vec<double> name(Vec<double> x) { return sleef::name(x); }
#define VESTA_SIMD_TAKE2(name) \
  VESTA_INLINE Vec<float> name(Vec<float> a, Vec<float> b) { return sleef::name(a, b); } \
  VESTA_INLINE Vec<double> name(Vec<double> a, Vec<double> b) { return sleef::name(a, b); }
VESTA_SIMD_TAKE1(exp)
VESTA_SIMD_TAKE1(exp2)
VESTA_SIMD_TAKE1(expm1)
VESTA_SIMD_TAKE1(log)
VESTA_SIMD_TAKE1(log2)
VESTA_SIMD_TAKE1(log10)
VESTA_SIMD_TAKE1(log1p)
VESTA_SIMD_TAKE1(cbrt)
VESTA_SIMD_TAKE1(sin)
VESTA_SIMD_TAKE1(cos)
VESTA_SIMD_TAKE1(tan)
VESTA_SIMD_TAKE1(asin)
VESTA_SIMD_TAKE1(acos)
VESTA_SIMD_TAKE1(atan)
VESTA_SIMD_TAKE1(sinh)
VESTA_SIMD_TAKE1(cosh)
VESTA_SIMD_TAKE1(tanh)
VESTA_SIMD_TAKE1(asinh)
VESTA_SIMD_TAKE1(acosh)
VESTA_SIMD_TAKE1(atanh)
VESTA_SIMD_TAKE1(erf)
VESTA_SIMD_TAKE1(erfc)
VESTA_SIMD_TAKE1(lgamma)
VESTA_SIMD_TAKE2(pow)
VESTA_SIMD_TAKE2(atan2)
VESTA_SIMD_TAKE2(hypot)
VESTA_SIMD_TAKE2(fmod)
#undef VESTA_SIMD_TAKE1
#undef VESTA_SIMD_TAKE2

/// Computes 1 / (1 + e^-x).
template <class T>
VESTA_INLINE Vec<T> sigmoid(Vec<T> x) {
  const Vec<T> one(T(1));
  return one / (one + exp(-x));
}

#undef VESTA_SLEEF_F
#undef VESTA_SLEEF_D

}  // namespace vesta::cpu::VESTA_ISA_NS
