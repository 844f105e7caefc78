// Loads and stores that convert: 16-bit floats, the other floating type, integers and bool. Included by simd.h.
//
//   Vec<float> x = load_convert<float, Half>(p);      store_convert(x, half_pointer);
//   Vec<float> t = load_convert_partial<float, Half>(p, n);      store_convert_partial(t, half_pointer, n);
#pragma once

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// A vector of N values of S, at any address.
template <class S, int N>
struct Packed {
  typedef S Type __attribute__((vector_size(sizeof(S) * N)));
  typedef S Unaligned __attribute__((vector_size(sizeof(S) * N), aligned(alignof(S)), may_alias));
};

using Float32Bits = Vec<float>::Bits;
using PackedHalf = Packed<std::uint16_t, Vec<float>::N>;

/// Widens 16-bit patterns to 32 bits.
VESTA_INLINE Float32Bits widen16(const void* p) {
  const typename PackedHalf::Type narrow = *static_cast<const PackedHalf::Unaligned*>(p);
  return __builtin_convertvector(narrow, Float32Bits);
}
/// Writes the low 16 bits of each lane.
VESTA_INLINE void narrow16(Float32Bits lanes, void* p) {
  *static_cast<PackedHalf::Unaligned*>(p) = __builtin_convertvector(lanes, typename PackedHalf::Type);
}

/// Reads binary16, exactly.
VESTA_INLINE Vec<float> load_half(const Half* p) {
#if defined(VESTA_SIMD_AVX512)
  const __m256i narrow = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_cvtph_ps(0xffff, narrow));
#elif defined(VESTA_SIMD_AVX2)
  return Vec<float>((Vec<float>::Raw)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  // The exponent is rebased by a product with 2^112, which also normalises denormals; infinities and NaN follow.
  const Float32Bits bits = widen16(p);
  const Float32Bits magnitude = bits & 0x7fff;
  const Float32Bits finite = (Vec<float>::from_bits(magnitude << 13) * Vec<float>(0x1p112f)).bits();
  const Float32Bits special = (magnitude << 13) | 0x7f800000 | ((magnitude > 0x7c00) & 0x400000);
  const Float32Bits is_special = magnitude >= 0x7c00;
  return Vec<float>::from_bits(((bits & 0x8000) << 16) | (is_special & special) | (~is_special & finite));
#endif
}

/// Writes binary16, to nearest even, with the bits of Half(float).
VESTA_INLINE void store_half(Vec<float> x, Half* p) {
#if defined(VESTA_SIMD_AVX512)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(0xffff, (__m512)x.raw, 0));
#elif defined(VESTA_SIMD_AVX2)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)x.raw, _MM_FROUND_TO_NEAREST_INT));
#else
  const Float32Bits bits = x.bits();
  const Float32Bits magnitude = bits & 0x7fffffff;
  const Float32Bits normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Below 2^-14: adding 0.5 lets the adder round to a multiple of 2^-24, which then stands in the low bits.
  const Float32Bits tiny = (Vec<float>::from_bits(magnitude) + Vec<float>(0.5f)).bits() - Vec<float>(0.5f).bits();
  const Float32Bits nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  const Float32Bits is_tiny = magnitude < 0x38800000, is_huge = magnitude >= 0x477ff000;
  const Float32Bits is_nan = magnitude > 0x7f800000;
  Float32Bits result = (is_tiny & tiny) | (~is_tiny & normal);
  result = (is_huge & 0x7c00) | (~is_huge & result);
  result = (is_nan & nan) | (~is_nan & result);
  narrow16(result | ((bits >> 16) & 0x8000), p);
#endif
}

/// Reads bfloat16, exactly.
VESTA_INLINE Vec<float> load_bfloat16(const BFloat16* p) { return Vec<float>::from_bits(widen16(p) << 16); }

/// Writes bfloat16, to nearest even, with the bits of BFloat16(float).
VESTA_INLINE void store_bfloat16(Vec<float> x, BFloat16* p) {
  const Float32Bits bits = x.bits(), high = bits >> 16;
  const Float32Bits rounded = (bits + 0x7fff + (high & 1)) >> 16;
  narrow16((bits & 0x7fffffff) > 0x7f800000 ? high | 0x40 : rounded, p);
}

/// Reads N values of S and converts them to T as static_cast does. S: T itself, Half, BFloat16, float, double, an
/// integer type or bool.
template <class T, class S>
VESTA_INLINE Vec<T> load_convert(const S* p) {
  constexpr int N = Vec<T>::N;
  if constexpr (std::is_same_v<S, T>) {
    return Vec<T>::load(p);
  } else if constexpr (std::is_same_v<S, Half> && std::is_same_v<T, float>) {
    return load_half(p);
  } else if constexpr (std::is_same_v<S, BFloat16> && std::is_same_v<T, float>) {
    return load_bfloat16(p);
  } else if constexpr (std::is_arithmetic_v<S> && !std::is_same_v<S, bool>) {
    const typename Packed<S, N>::Type lanes = *reinterpret_cast<const typename Packed<S, N>::Unaligned*>(p);
    return Vec<T>(__builtin_convertvector(lanes, typename Vec<T>::Raw));
  } else {
    typename Vec<T>::Raw lanes{};
    for (int i = 0; i < N; ++i) lanes[i] = static_cast<T>(p[i]);
    return Vec<T>(lanes);
  }
}

/// Converts N lanes to S as static_cast does and writes them. A float beyond an integer type's range gives an
/// unspecified value (as on every CPU), never a trap; bool is x != 0.
template <class T, class S>
VESTA_INLINE void store_convert(Vec<T> x, S* p) {
  constexpr int N = Vec<T>::N;
  if constexpr (std::is_same_v<S, T>) {
    x.store(p);
  } else if constexpr (std::is_same_v<S, Half> && std::is_same_v<T, float>) {
    store_half(x, p);
  } else if constexpr (std::is_same_v<S, BFloat16> && std::is_same_v<T, float>) {
    store_bfloat16(x, p);
  } else if constexpr (std::is_same_v<S, bool>) {
    (x != Vec<T>(T(0))).store(p);
  } else if constexpr (std::is_arithmetic_v<S>) {
    *reinterpret_cast<typename Packed<S, N>::Unaligned*>(p) =
        __builtin_convertvector(x.raw, typename Packed<S, N>::Type);
  } else {
    for (int i = 0; i < N; ++i) p[i] = static_cast<S>(static_cast<float>(x[i]));
  }
}

/// Reads the first n values (1 to N) and no memory beyond; the other lanes are 0.
template <class T, class S>
VESTA_INLINE Vec<T> load_convert_partial(const S* p, std::int64_t n) {
  if constexpr (std::is_same_v<S, T>) {
    return Vec<T>::load_partial(p, n);
  } else {
    S padded[Vec<T>::N] = {};
    for (std::int64_t i = 0; i < n; ++i) padded[i] = p[i];
    return load_convert<T>(static_cast<const S*>(padded));
  }
}

/// Writes the first n lanes (1 to N) and no memory beyond.
template <class T, class S>
VESTA_INLINE void store_convert_partial(Vec<T> x, S* p, std::int64_t n) {
  if constexpr (std::is_same_v<S, T>) {
    x.store_partial(p, n);
  } else {
    S padded[Vec<T>::N];
    store_convert(x, static_cast<S*>(padded));
    for (std::int64_t i = 0; i < n; ++i) p[i] = padded[i];
  }
}

}  // namespace vesta::cpu::VESTA_ISA_NS
