// The two 16-bit floating types. They are storage types; arithmetic happens in float, to which both convert exactly
// and implicitly.
//
// Every conversion gives the same bits on every path: the portable code below, the F16C instructions, the vectors of
// core/cpu/simd.h. (A CUDA device differs in one thing: a NaN becomes the canonical 0x7fff.) All functions are forced
// inline, so that a translation unit compiled with F16C leaves no symbol that an older CPU could call.
#pragma once

#include <vesta/core/base/macros.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__F16C__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace vesta {

/// Converts `value` to IEEE binary16, to nearest, ties to even. Overflow (from 65520 on) gives infinity; a NaN keeps
/// its sign and the top of its payload and becomes quiet, as vcvtps2ph does.
VESTA_HD VESTA_INLINE constexpr std::uint16_t float_to_half_bits(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t device_bits;
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(device_bits) : "f"(value));
  return device_bits;
#else
#if defined(__F16C__) && !defined(__CUDACC__)
  if (!__builtin_is_constant_evaluated()) {
    return static_cast<std::uint16_t>(_cvtss_sh(value, 0));  // 0: _MM_FROUND_TO_NEAREST_INT
  }
#endif
  const auto x = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (x >> 16) & 0x8000u;
  const std::uint32_t magnitude = x & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) {  // 65520: halfway between the largest half and the power of two above it
    return static_cast<std::uint16_t>(sign | 0x7c00u);
  }
  if (magnitude < 0x38800000u) {  // below 2^-14 the result is denormal: a multiple of 2^-24
    if (magnitude < 0x33000000u) return static_cast<std::uint16_t>(sign);  // below 2^-25
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t quotient = significand >> shift;
    const std::uint32_t rest = significand & ((1u << shift) - 1u);
    const std::uint32_t halfway = 1u << (shift - 1u);
    const std::uint32_t up = (rest > halfway || (rest == halfway && (quotient & 1u) != 0)) ? 1u : 0u;
    return static_cast<std::uint16_t>(sign | (quotient + up));
  }
  const std::uint32_t rebased = magnitude - 0x38000000u;  // exponent bias 127 -> 15
  return static_cast<std::uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
#endif
}

/// Converts IEEE binary16 `bits` to float, exactly. A signalling NaN becomes quiet, as vcvtph2ps does.
VESTA_HD VESTA_INLINE constexpr float half_bits_to_float(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float device_value;
  asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(device_value) : "h"(bits));
  return device_value;
#else
#if defined(__F16C__) && !defined(__CUDACC__)
  if (!__builtin_is_constant_evaluated()) return _cvtsh_ss(bits);
#endif
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude > 0x7c00u) return __builtin_bit_cast(float, sign | 0x7fc00000u | (magnitude << 13));
  if (magnitude == 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u);
  if (magnitude < 0x400u) {  // a multiple of 2^-24, exact in float
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return __builtin_bit_cast(float, sign | ((magnitude << 13) + 0x38000000u));
#endif
}

/// Converts `value` to bfloat16, to nearest, ties to even. A NaN keeps its sign and the top of its payload and becomes
/// quiet. Denormals are kept.
VESTA_HD VESTA_INLINE constexpr std::uint16_t float_to_bfloat16_bits(float value) {
  const auto x = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (x >> 16) | 0x40u;
  return static_cast<std::uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/// Converts bfloat16 `bits` to float, exactly.
VESTA_HD VESTA_INLINE constexpr float bfloat16_bits_to_float(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

/// An IEEE binary16 number: 11 significant bits, up to 65504.
struct Half {
  std::uint16_t bits;

  Half() = default;
  /// Rounds to nearest, ties to even. Other types go through float.
  VESTA_HD VESTA_INLINE explicit constexpr Half(float value) : bits(float_to_half_bits(value)) {}
  /// Widens exactly.
  VESTA_HD VESTA_INLINE constexpr operator float() const { return half_bits_to_float(bits); }
  /// Makes the number with this bit pattern.
  VESTA_HD VESTA_INLINE static constexpr Half from_bits(std::uint16_t pattern) {
    Half h{};
    h.bits = pattern;
    return h;
  }
};

/// A bfloat16 number: float's range with 8 significant bits.
struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  /// Rounds to nearest, ties to even. Other types go through float.
  VESTA_HD VESTA_INLINE explicit constexpr BFloat16(float value) : bits(float_to_bfloat16_bits(value)) {}
  /// Widens exactly.
  VESTA_HD VESTA_INLINE constexpr operator float() const { return bfloat16_bits_to_float(bits); }
  /// Makes the number with this bit pattern.
  VESTA_HD VESTA_INLINE static constexpr BFloat16 from_bits(std::uint16_t pattern) {
    BFloat16 b{};
    b.bits = pattern;
    return b;
  }
};

static_assert(sizeof(Half) == 2 && std::is_trivially_copyable_v<Half> &&
              std::is_trivially_default_constructible_v<Half>);
static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16> &&
              std::is_trivially_default_constructible_v<BFloat16>);

/// True for a T that is stored in 16 bits and computed in float.
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

}  // namespace vesta

namespace std {

template <>
class numeric_limits<vesta::Half> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, is_iec559 = true;
  static constexpr bool is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5, radix = 2;
  static constexpr int min_exponent = -13, min_exponent10 = -4, max_exponent = 16, max_exponent10 = 4;
  VESTA_HD VESTA_INLINE static constexpr vesta::Half min() { return vesta::Half::from_bits(0x0400); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half max() { return vesta::Half::from_bits(0x7bff); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half lowest() { return vesta::Half::from_bits(0xfbff); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half epsilon() { return vesta::Half::from_bits(0x1400); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half round_error() { return vesta::Half::from_bits(0x3800); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half infinity() { return vesta::Half::from_bits(0x7c00); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half quiet_NaN() { return vesta::Half::from_bits(0x7e00); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half signaling_NaN() { return vesta::Half::from_bits(0x7d00); }
  VESTA_HD VESTA_INLINE static constexpr vesta::Half denorm_min() { return vesta::Half::from_bits(0x0001); }
};

template <>
class numeric_limits<vesta::BFloat16> {
 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, is_iec559 = false;
  static constexpr bool is_bounded = true, is_modulo = false, traps = false, tinyness_before = false;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4, radix = 2;
  static constexpr int min_exponent = -125, min_exponent10 = -37, max_exponent = 128, max_exponent10 = 38;
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 min() { return vesta::BFloat16::from_bits(0x0080); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 max() { return vesta::BFloat16::from_bits(0x7f7f); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 lowest() { return vesta::BFloat16::from_bits(0xff7f); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 epsilon() { return vesta::BFloat16::from_bits(0x3c00); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 round_error() { return vesta::BFloat16::from_bits(0x3f00); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 infinity() { return vesta::BFloat16::from_bits(0x7f80); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 quiet_NaN() { return vesta::BFloat16::from_bits(0x7fc0); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 signaling_NaN() { return vesta::BFloat16::from_bits(0x7fa0); }
  VESTA_HD VESTA_INLINE static constexpr vesta::BFloat16 denorm_min() { return vesta::BFloat16::from_bits(0x0001); }
};

}  // namespace std
