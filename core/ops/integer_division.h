// Division of integers of up to 32 bits, and of longer ones that need no more than 51, on the host, by that of
// floating-point numbers: a vector of quotients takes the time of one integer division, which no instruction set has
// for vectors.
//
// The truncated quotient is exact. Where a / b is no integer, it is at least 1 / |b| away from the next one, and its
// rounding error, at most |a / b| 2^-24 in float and |a / b| 2^-53 in double, is smaller: |a| is at most 2^16 and 2^50.
#pragma once
#include <cstdint>
#include <type_traits>

#include <vesta/core/ops/math.h>

namespace vesta::math {
inline namespace VESTA_ISA_NS {

template <class T>
concept ShortInteger =
    Integer<T> && !std::is_same_v<T, bool> && (sizeof(T) <= 2 || (sizeof(T) == 4 && std::is_signed_v<T>));

/// Returns the divisor used instead of b: 1 for 0 and -1, whose quotients are chosen afterwards.
template <ShortInteger T>
VESTA_INLINE std::int32_t safe_divisor(T b) {
  const auto wide = std::int32_t(b);
  return (wide == 0) | (wide == -1) ? 1 : wide;
}
template <ShortInteger T>
VESTA_INLINE std::int32_t safe_quotient(T a, std::int32_t divisor) {
  using Float = std::conditional_t<sizeof(T) <= 2, float, double>;
  return std::int32_t(Float(a) / Float(divisor));
}
/// Returns `quotient`, that of a by safe_divisor(b), or what a / 0 and a / -1 are: 0 and -a, wrapping.
template <ShortInteger T>
VESTA_INLINE T chosen_quotient(T a, T b, std::int32_t quotient) {
  quotient = std::int32_t(b) == -1 ? std::int32_t(std::uint32_t(0) - std::uint32_t(std::int32_t(a))) : quotient;
  return static_cast<T>(b == T(0) ? 0 : quotient);
}

// As the functions of math.h for all integers.
template <ShortInteger T>
VESTA_INLINE T trunc_divide(T a, T b) {
  return chosen_quotient(a, b, safe_quotient(a, safe_divisor(b)));
}
template <ShortInteger T>
VESTA_INLINE T fmod(T a, T b) {
  const std::int32_t divisor = safe_divisor(b);
  return static_cast<T>(std::int32_t(a) - safe_quotient(a, divisor) * divisor);
}
template <ShortInteger T>
VESTA_INLINE T floor_divide(T a, T b) {
  const std::int32_t divisor = safe_divisor(b), quotient = safe_quotient(a, divisor);
  const std::int32_t rest = std::int32_t(a) - quotient * divisor;
  const bool below = (rest != 0) & ((rest < 0) != (divisor < 0));
  return chosen_quotient(a, b, below ? quotient - 1 : quotient);
}
template <ShortInteger T>
VESTA_INLINE T remainder(T a, T b) {
  const std::int32_t divisor = safe_divisor(b), rest = std::int32_t(a) - safe_quotient(a, divisor) * divisor;
  const bool other = (rest != 0) & ((rest < 0) != (divisor < 0));
  return static_cast<T>(other ? rest + divisor : rest);
}

/// An integer in [-2^50, 2^50), which divides as a double.
struct SmallLong {
  std::int64_t value;
};
/// Returns a number that is below 2^51 if v is a SmallLong.
VESTA_INLINE std::uint64_t size_as_small(std::int64_t v) { return std::uint64_t(v) + (std::uint64_t(1) << 50); }
constexpr std::uint64_t kSmallLongs = std::uint64_t(1) << 51;

// AVX2 does not convert 64-bit integers. In 1.5 2^52 + v, a double, v is the fraction's lower bits.
constexpr double kLongMagic = 0x1.8p52;
constexpr std::uint64_t kLongMagicBits = 0x4338000000000000;
VESTA_INLINE double as_double(SmallLong v) {
  return __builtin_bit_cast(double, std::uint64_t(v.value) + kLongMagicBits) - kLongMagic;
}
VESTA_INLINE SmallLong as_small(double v) {
  return {std::int64_t(__builtin_bit_cast(std::uint64_t, v + kLongMagic) - kLongMagicBits)};
}
/// Returns the divisor used instead of b: 1 for 0, whose quotient is chosen afterwards.
VESTA_INLINE double safe_divisor(SmallLong b) { return b.value == 0 ? 1.0 : as_double(b); }

// As the functions of math.h for all integers; the products are exact.
VESTA_INLINE SmallLong trunc_divide(SmallLong a, SmallLong b) {
  const double quotient = __builtin_trunc(as_double(a) / safe_divisor(b));
  return as_small(b.value == 0 ? 0.0 : quotient);
}
VESTA_INLINE SmallLong fmod(SmallLong a, SmallLong b) {
  const double dividend = as_double(a), divisor = safe_divisor(b);
  return as_small(dividend - __builtin_trunc(dividend / divisor) * divisor);
}
VESTA_INLINE SmallLong floor_divide(SmallLong a, SmallLong b) {
  const double quotient = __builtin_floor(as_double(a) / safe_divisor(b));
  return as_small(b.value == 0 ? 0.0 : quotient);
}
VESTA_INLINE SmallLong remainder(SmallLong a, SmallLong b) {
  const double dividend = as_double(a), divisor = safe_divisor(b);
  return as_small(dividend - __builtin_floor(dividend / divisor) * divisor);
}

}  // namespace VESTA_ISA_NS
}  // namespace vesta::math
