// Vectors of float and double for the CPU kernels: Vec<T>, its masks, loads and stores, arithmetic.
//
// Tour. Vec<T> wraps one register of the instruction set that this file is compiled for: 64 bytes with AVX-512, 32
// with AVX2 and FMA, else 16. Operators, comparisons (giving Mask<T>) and select() are below; simd_convert.h loads and
// stores 16-bit floats and integers; exp, sin, pow and the like are in simd_math.h. A kernel reads
//
//   std::int64_t i = 0;
//   for (; i + Vec<T>::N <= n; i += Vec<T>::N) Op::forward(Vec<T>::load(x + i)).store(y + i);
//   if (i < n) Op::forward(Vec<T>::load_partial(x + i, n - i)).store_partial(y + i, n - i);
//
// and every element gets the same bits wherever it stands: the tail runs through the same code, padded with zeros, and
// the compiler contracts nothing to an FMA by itself (the build passes -ffp-contract=off).
//
// Note [No weak symbols]
// The same sources are compiled once per instruction set and linked into one library. An inline function or a template
// that is emitted by two of these compilations under one name is merged by the linker, which keeps either copy: a
// baseline kernel then runs AVX-512 code and dies on an older CPU. So whatever is compiled per instruction set must
// either live in a namespace that is named after it (vesta::cpu::VESTA_ISA_NS, and the inline namespaces of
// core/ops/math.h) or be forced inline (VESTA_INLINE), functions of base/ included. The same rule holds for op structs
// and loop templates that are instantiated in such a file, and for std:: code: prefer builtins and plain loops.
// Rejected: one shared library per instruction set (three files to ship), -fvisibility tricks (weak symbols are still
// merged inside a library).
#pragma once

#include <vesta/core/base/half.h>
#include <vesta/core/base/macros.h>

#include <immintrin.h>

#include <cstdint>
#include <type_traits>

namespace vesta::cpu::VESTA_ISA_NS {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define VESTA_SIMD_AVX512 1
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define VESTA_SIMD_AVX2 1
inline constexpr int kVectorBytes = 32;
#else
#define VESTA_SIMD_SSE 1
inline constexpr int kVectorBytes = 16;
#endif

/// True if a product and a sum can be fused in one instruction here.
#ifdef VESTA_SIMD_SSE
inline constexpr bool kHasFma = false;
#else
inline constexpr bool kHasFma = true;
#endif

template <class T>
struct Vec;
template <class T>
struct Mask;

/// The integer type as wide as T.
template <class T>
using IntOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// ---- native types ---------------------------------------------------------------------------------------------------

/// The compiler's vector types for T: the register, the register's bits, and the register at any address.
template <class T>
struct Native {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef IntOf<T> Bits __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
};

// ---- masks ----------------------------------------------------------------------------------------------------------

/// One truth value per lane of Vec<T>.
template <class T>
struct Mask {
  static constexpr int N = kVectorBytes / static_cast<int>(sizeof(T));
#ifdef VESTA_SIMD_AVX512
  using Raw = std::conditional_t<N == 16, __mmask16, __mmask8>;
#else
  using Raw = typename Native<T>::Bits;  // lanes are 0 or -1
#endif
  Raw raw;

  Mask() = default;
  VESTA_INLINE explicit Mask(Raw bits) : raw(bits) {}
  /// Sets every lane to the same value.
  VESTA_INLINE explicit Mask(bool value) {
#ifdef VESTA_SIMD_AVX512
    raw = value ? static_cast<Raw>(-1) : static_cast<Raw>(0);
#else
    raw = Raw{} - static_cast<IntOf<T>>(value);
#endif
  }

  VESTA_INLINE friend Mask operator&(Mask a, Mask b) { return Mask(static_cast<Raw>(a.raw & b.raw)); }
  VESTA_INLINE friend Mask operator|(Mask a, Mask b) { return Mask(static_cast<Raw>(a.raw | b.raw)); }
  VESTA_INLINE friend Mask operator^(Mask a, Mask b) { return Mask(static_cast<Raw>(a.raw ^ b.raw)); }
  VESTA_INLINE friend Mask operator!=(Mask a, Mask b) { return a ^ b; }
  VESTA_INLINE friend Mask operator==(Mask a, Mask b) { return ~(a ^ b); }
  VESTA_INLINE friend Mask operator~(Mask a) { return Mask(static_cast<Raw>(~a.raw)); }
  /// Negates, like ~. (Formulas that also serve bool write !.)
  VESTA_INLINE friend Mask operator!(Mask a) { return ~a; }

  /// Returns lane i.
  VESTA_INLINE bool operator[](int i) const {
#ifdef VESTA_SIMD_AVX512
    return ((static_cast<unsigned>(raw) >> i) & 1u) != 0;
#else
    return raw[i] != 0;
#endif
  }
  /// Returns the lanes as bits 0 to N - 1.
  VESTA_INLINE unsigned bits() const {
#if defined(VESTA_SIMD_AVX512)
    return static_cast<unsigned>(raw);
#elif defined(VESTA_SIMD_AVX2)
    if constexpr (N == 8) {
      return static_cast<unsigned>(_mm256_movemask_ps((__m256)raw));
    } else {
      return static_cast<unsigned>(_mm256_movemask_pd((__m256d)raw));
    }
#else
    if constexpr (N == 4) {
      return static_cast<unsigned>(_mm_movemask_ps((__m128)raw));
    } else {
      return static_cast<unsigned>(_mm_movemask_pd((__m128d)raw));
    }
#endif
  }
  /// Writes the first n lanes (1 to N) as bytes 0 and 1.
  VESTA_INLINE void store(bool* p, std::int64_t n = N) const {
#ifdef VESTA_SIMD_AVX512
    if (n == N) {
      const __m128i bytes = _mm_maskz_set1_epi8(static_cast<__mmask16>(raw), 1);
      __builtin_memcpy(p, &bytes, N);
      return;
    }
#endif
    const unsigned all = bits();
    if (n == N) {  // eight lanes at a time: bit i into byte i, any bit of a byte down to its lowest
      for (int i = 0; i < N; i += 8) {
        const std::uint64_t spread = ((all >> i) & 0xffu) * 0x0101010101010101u & 0x8040201008040201u;
        const std::uint64_t bytes = ((spread + 0x7f7f7f7f7f7f7f7fu) >> 7) & 0x0101010101010101u;
        __builtin_memcpy(p + i, &bytes, N < 8 ? std::size_t(N) : 8);
      }
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) p[i] = ((all >> i) & 1u) != 0;
  }
  /// Reads n bytes (1 to N), any of which but 0 is true; the other lanes are false.
  VESTA_INLINE static Mask load(const bool* p, std::int64_t n = N) {
    typename Native<T>::Bits lanes{};
    for (std::int64_t i = 0; i < n; ++i) {
      lanes[i] = reinterpret_cast<const unsigned char*>(p)[i] != 0 ? -1 : 0;
    }
#ifdef VESTA_SIMD_AVX512
    if constexpr (N == 16) {
      return Mask(_mm512_movepi32_mask((__m512i)lanes));
    } else {
      return Mask(_mm512_movepi64_mask((__m512i)lanes));
    }
#else
    return Mask(lanes);
#endif
  }
};

/// Writes the lanes of four masks as bytes 0 and 1.
template <class T>
VESTA_INLINE void store_masks(const Mask<T> (&m)[4], bool* p) {
#ifdef VESTA_SIMD_AVX2
  if constexpr (Mask<T>::N == 8) {  // packed within halves, then put in order (build/bin/bandwidth 'x < y')
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32((__m256i)m[0].raw, (__m256i)m[1].raw),
                                             _mm256_packs_epi32((__m256i)m[2].raw, (__m256i)m[3].raw));
    const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_and_si256(ordered, _mm256_set1_epi8(1)));
    return;
  }
#endif
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) m[k].store(p + k * Mask<T>::N);
}

/// Returns whether any lane is true.
template <class T>
VESTA_INLINE bool any(Mask<T> m) {
  return m.bits() != 0;
}
/// Returns whether every lane is true.
template <class T>
VESTA_INLINE bool all(Mask<T> m) {
  return m.bits() == (1u << Mask<T>::N) - 1u;
}

// ---- vectors --------------------------------------------------------------------------------------------------------

#ifdef VESTA_SIMD_AVX512
#define VESTA_SIMD_COMPARE(op, predicate)                                                     \
  VESTA_INLINE friend Mask<T> operator op(Vec a, Vec b) {                                     \
    if constexpr (N == 16) {                                                                  \
      return Mask<T>(_mm512_cmp_ps_mask((__m512)a.raw, (__m512)b.raw, predicate));            \
    } else {                                                                                  \
      return Mask<T>(_mm512_cmp_pd_mask((__m512d)a.raw, (__m512d)b.raw, predicate));          \
    }                                                                                         \
  }
#else
#define VESTA_SIMD_COMPARE(op, predicate)                                                     \
  VESTA_INLINE friend Mask<T> operator op(Vec a, Vec b) { return Mask<T>((Bits)(a.raw op b.raw)); }
#endif

/// A vector of N numbers of type T (float or double), on which operations work at once.
template <class T>
struct Vec {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  static constexpr int N = kVectorBytes / static_cast<int>(sizeof(T));
  using value_type = T;
  using Raw = typename Native<T>::Type;
  using Bits = typename Native<T>::Bits;
  Raw raw;

  Vec() = default;
  VESTA_INLINE explicit Vec(Raw lanes) : raw(lanes) {}
  /// Sets every lane to the same value. Implicit, so that 1 - x can be written.
  VESTA_INLINE Vec(T value) { raw = value - Raw{}; }  // -0.0 - 0.0 is -0.0, where a sum would lose the sign

  /// Reads N numbers; p need not be aligned.
  VESTA_INLINE static Vec load(const T* p) {
    return Vec((Raw)(*reinterpret_cast<const typename Native<T>::Unaligned*>(p)));
  }
  /// Reads the first n numbers (1 to N) and no memory beyond; the other lanes are 0.
  VESTA_INLINE static Vec load_partial(const T* p, std::int64_t n);
  /// Writes N numbers; p need not be aligned.
  VESTA_INLINE void store(T* p) const { *reinterpret_cast<typename Native<T>::Unaligned*>(p) = raw; }
  /// Writes the first n lanes (1 to N) and no memory beyond.
  VESTA_INLINE void store_partial(T* p, std::int64_t n) const;
  /// Writes N numbers past the caches; p is aligned to kVectorBytes. For outputs larger than the last-level cache.
  VESTA_INLINE void stream(T* p) const;

  /// Returns lane i.
  VESTA_INLINE T operator[](int i) const { return raw[i]; }
  /// Returns the bit pattern, one integer per lane.
  VESTA_INLINE Bits bits() const { return (Bits)raw; }
  /// Makes numbers from bit patterns.
  VESTA_INLINE static Vec from_bits(Bits pattern) { return Vec((Raw)pattern); }

  VESTA_INLINE friend Vec operator+(Vec a, Vec b) { return Vec(a.raw + b.raw); }
  VESTA_INLINE friend Vec operator-(Vec a, Vec b) { return Vec(a.raw - b.raw); }
  VESTA_INLINE friend Vec operator*(Vec a, Vec b) { return Vec(a.raw * b.raw); }
  VESTA_INLINE friend Vec operator/(Vec a, Vec b) { return Vec(a.raw / b.raw); }
  VESTA_INLINE friend Vec operator-(Vec a) { return Vec(-a.raw); }
  VESTA_INLINE friend Vec operator+(Vec a) { return a; }
  VESTA_INLINE Vec& operator+=(Vec b) { return *this = *this + b; }
  VESTA_INLINE Vec& operator-=(Vec b) { return *this = *this - b; }
  VESTA_INLINE Vec& operator*=(Vec b) { return *this = *this * b; }
  VESTA_INLINE Vec& operator/=(Vec b) { return *this = *this / b; }

  VESTA_SIMD_COMPARE(<, _CMP_LT_OQ)
  VESTA_SIMD_COMPARE(<=, _CMP_LE_OQ)
  VESTA_SIMD_COMPARE(>, _CMP_GT_OQ)
  VESTA_SIMD_COMPARE(>=, _CMP_GE_OQ)
  VESTA_SIMD_COMPARE(==, _CMP_EQ_OQ)
  VESTA_SIMD_COMPARE(!=, _CMP_NEQ_UQ)

  /// Returns a where the mask is true, else b.
  VESTA_INLINE friend Vec select(Mask<T> mask, Vec a, Vec b) {
#if defined(VESTA_SIMD_AVX512)
    if constexpr (N == 16) {
      return Vec((Raw)_mm512_mask_blend_ps(mask.raw, (__m512)b.raw, (__m512)a.raw));
    } else {
      return Vec((Raw)_mm512_mask_blend_pd(mask.raw, (__m512d)b.raw, (__m512d)a.raw));
    }
#elif defined(VESTA_SIMD_AVX2)
    if constexpr (N == 8) {
      return Vec((Raw)_mm256_blendv_ps((__m256)b.raw, (__m256)a.raw, (__m256)mask.raw));
    } else {
      return Vec((Raw)_mm256_blendv_pd((__m256d)b.raw, (__m256d)a.raw, (__m256d)mask.raw));
    }
#else
    return Vec((Raw)((mask.raw & (Bits)a.raw) | (~mask.raw & (Bits)b.raw)));
#endif
  }
};
#undef VESTA_SIMD_COMPARE

// ---- partial loads and stores ---------------------------------------------------------------------------------------

#ifdef VESTA_SIMD_AVX2
/// Returns a lane mask whose first n lanes (0 to 8) are set, for vmaskmov.
VESTA_INLINE __m256i first_lanes32(std::int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/// Returns a lane mask whose first n lanes (0 to 4) are set.
VESTA_INLINE __m256i first_lanes64(std::int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

template <class T>
VESTA_INLINE Vec<T> Vec<T>::load_partial(const T* p, std::int64_t n) {
#if defined(VESTA_SIMD_AVX512)
  const auto lanes = static_cast<typename Mask<T>::Raw>((1u << n) - 1u);
  if constexpr (N == 16) {
    return Vec((Raw)_mm512_maskz_loadu_ps(lanes, p));
  } else {
    return Vec((Raw)_mm512_maskz_loadu_pd(lanes, p));
  }
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (N == 8) {
    return Vec((Raw)_mm256_maskload_ps(p, first_lanes32(n)));
  } else {
    return Vec((Raw)_mm256_maskload_pd(p, first_lanes64(n)));
  }
#else
  Raw lanes{};
  for (std::int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return Vec(lanes);
#endif
}

template <class T>
VESTA_INLINE void Vec<T>::store_partial(T* p, std::int64_t n) const {
#if defined(VESTA_SIMD_AVX512)
  const auto lanes = static_cast<typename Mask<T>::Raw>((1u << n) - 1u);
  if constexpr (N == 16) {
    _mm512_mask_storeu_ps(p, lanes, (__m512)raw);
  } else {
    _mm512_mask_storeu_pd(p, lanes, (__m512d)raw);
  }
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (N == 8) {
    _mm256_maskstore_ps(p, first_lanes32(n), (__m256)raw);
  } else {
    _mm256_maskstore_pd(p, first_lanes64(n), (__m256d)raw);
  }
#else
  for (std::int64_t i = 0; i < n; ++i) p[i] = raw[i];
#endif
}

template <class T>
VESTA_INLINE void Vec<T>::stream(T* p) const {
#if defined(VESTA_SIMD_AVX512)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)raw);
#elif defined(VESTA_SIMD_AVX2)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)raw);
#else
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)raw);
#endif
}

// ---- signs, NaN, extremes -------------------------------------------------------------------------------------------

/// Returns the vector whose lanes hold only the sign bit.
template <class T>
VESTA_INLINE typename Vec<T>::Bits sign_bit() {
  typename Vec<T>::Bits bits{};
  return bits + static_cast<IntOf<T>>(std::uint64_t{1} << 63 >> (64 - 8 * sizeof(T)));
}

template <class T>
VESTA_INLINE Vec<T> abs(Vec<T> x) {
  return Vec<T>::from_bits(x.bits() & ~sign_bit<T>());
}
/// Returns |a| with the sign of b.
template <class T>
VESTA_INLINE Vec<T> copysign(Vec<T> a, Vec<T> b) {
  return Vec<T>::from_bits((a.bits() & ~sign_bit<T>()) | (b.bits() & sign_bit<T>()));
}
/// Returns the mask of lanes whose sign bit is set, -0 and NaN included.
template <class T>
VESTA_INLINE Mask<T> signbit(Vec<T> x) {
  return Vec<T>::from_bits((x.bits() & sign_bit<T>()) | Vec<T>(T(1)).bits()) < Vec<T>(T(0));
}
template <class T>
VESTA_INLINE Mask<T> isnan(Vec<T> x) {
  return x != x;
}
template <class T>
VESTA_INLINE Mask<T> isinf(Vec<T> x) {
  return abs(x) == Vec<T>(static_cast<T>(__builtin_huge_val()));
}
template <class T>
VESTA_INLINE Mask<T> isfinite(Vec<T> x) {
  return abs(x) < Vec<T>(static_cast<T>(__builtin_huge_val()));
}
/// Returns -1, 0 or 1; 0 for NaN, as torch.sign does.
template <class T>
VESTA_INLINE Vec<T> sign(Vec<T> x) {
  const Vec<T> zero(T(0));
  return select(x > zero, Vec<T>(T(1)), select(x < zero, Vec<T>(T(-1)), zero));
}
/// Returns sign(x); for complex numbers, x / |x|.
template <class T>
VESTA_INLINE Vec<T> sgn(Vec<T> x) {
  return sign(x);
}
/// Returns b where a > b and a otherwise, also if either is NaN: one instruction (minps, which returns its second
/// operand unless the first one is smaller).
template <class T>
VESTA_INLINE Vec<T> lower_or_first(Vec<T> a, std::type_identity_t<Vec<T>> b) {
  using Raw = typename Vec<T>::Raw;
#if defined(VESTA_SIMD_AVX512)
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm512_maskz_min_ps(0xffff, (__m512)b.raw, (__m512)a.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm512_maskz_min_pd(0xff, (__m512d)b.raw, (__m512d)a.raw));
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm256_min_ps((__m256)b.raw, (__m256)a.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm256_min_pd((__m256d)b.raw, (__m256d)a.raw));
#else
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm_min_ps((__m128)b.raw, (__m128)a.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm_min_pd((__m128d)b.raw, (__m128d)a.raw));
#endif
}
/// Returns b where b > a and a otherwise, also if either is NaN.
template <class T>
VESTA_INLINE Vec<T> higher_or_first(Vec<T> a, std::type_identity_t<Vec<T>> b) {
  using Raw = typename Vec<T>::Raw;
#if defined(VESTA_SIMD_AVX512)
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm512_maskz_max_ps(0xffff, (__m512)b.raw, (__m512)a.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm512_maskz_max_pd(0xff, (__m512d)b.raw, (__m512d)a.raw));
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm256_max_ps((__m256)b.raw, (__m256)a.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm256_max_pd((__m256d)b.raw, (__m256d)a.raw));
#else
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm_max_ps((__m128)b.raw, (__m128)a.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm_max_pd((__m128d)b.raw, (__m128d)a.raw));
#endif
}
/// Returns the larger operand, NaN if either is NaN, the first of two equal ones.
template <class T>
VESTA_INLINE Vec<T> maximum(Vec<T> a, Vec<T> b) {
  return select(b != b, b, higher_or_first(a, b));
}
/// Returns the smaller operand, NaN if either is NaN, the first of two equal ones.
template <class T>
VESTA_INLINE Vec<T> minimum(Vec<T> a, Vec<T> b) {
  return select(b != b, b, lower_or_first(a, b));
}
/// Returns the larger operand; of a NaN and a number, the number.
template <class T>
VESTA_INLINE Vec<T> fmax(Vec<T> a, Vec<T> b) {
  return select((a >= b) | (b != b), a, b);
}
/// Returns the smaller operand; of a NaN and a number, the number.
template <class T>
VESTA_INLINE Vec<T> fmin(Vec<T> a, Vec<T> b) {
  return select((a <= b) | (b != b), a, b);
}
/// Splits x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1, exactly. 0, infinities and NaN are their own mantissas,
/// with exponent 0.
template <class T>
VESTA_INLINE Vec<T> frexp(Vec<T> x, Vec<T>& exponent) {
  using Bits = typename Vec<T>::Bits;
  constexpr bool single = sizeof(T) == 4;
  constexpr IntOf<T> fraction_bits = single ? 23 : 52, bias = single ? 126 : 1022, field_mask = single ? 0xff : 0x7ff;
  const Mask<T> small = abs(x) < Vec<T>(T(single ? 0x1p-126 : 0x1p-1022));  // lifted into the range of normal numbers
  const Bits bits = select(small, x * Vec<T>(T(0x1p64)), x).bits();
  const Bits field = (bits >> fraction_bits) & field_mask;
  const Vec<T> half = Vec<T>::from_bits((bits & ~(field_mask << fraction_bits)) | (bias << fraction_bits));
  const Vec<T> zero(T(0)), power(__builtin_convertvector(field - bias, typename Vec<T>::Raw));
  const Mask<T> splits = isfinite(x) & (x != zero);
  exponent = select(splits, power - select(small, Vec<T>(T(64)), zero), zero);
  return select(splits, half, x);
}
/// Returns the number next to a towards b, lane by lane.
template <class T>
VESTA_INLINE Vec<T> nextafter(Vec<T> a, Vec<T> b) {
  for (int i = 0; i < Vec<T>::N; ++i) {
    if constexpr (sizeof(T) == 4) a.raw[i] = __builtin_nextafterf(a[i], b[i]);
    if constexpr (sizeof(T) == 8) a.raw[i] = __builtin_nextafter(a[i], b[i]);
  }
  return a;
}
template <class T>
VESTA_INLINE Vec<T> conj(Vec<T> x) {
  return x;
}

/// Computes a * b + c with one rounding if the CPU can (kHasFma), else with two. Use it only for polynomials of
/// simd_math.h and in kernels that say so: formulas of ops are written with * and +.
template <class T>
VESTA_INLINE Vec<T> mul_add(Vec<T> a, std::type_identity_t<Vec<T>> b, std::type_identity_t<Vec<T>> c) {
  using Raw = typename Vec<T>::Raw;
#if defined(VESTA_SIMD_AVX512)
  if constexpr (Vec<T>::N == 16) {
    return Vec<T>((Raw)_mm512_fmadd_ps((__m512)a.raw, (__m512)b.raw, (__m512)c.raw));
  } else {
    return Vec<T>((Raw)_mm512_fmadd_pd((__m512d)a.raw, (__m512d)b.raw, (__m512d)c.raw));
  }
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (Vec<T>::N == 8) {
    return Vec<T>((Raw)_mm256_fmadd_ps((__m256)a.raw, (__m256)b.raw, (__m256)c.raw));
  } else {
    return Vec<T>((Raw)_mm256_fmadd_pd((__m256d)a.raw, (__m256d)b.raw, (__m256d)c.raw));
  }
#else
  return Vec<T>((Raw)(a.raw * b.raw + c.raw));
#endif
}

}  // namespace vesta::cpu::VESTA_ISA_NS

#include <vesta/core/cpu/simd_convert.h>
#include <vesta/core/cpu/simd_math.h>
