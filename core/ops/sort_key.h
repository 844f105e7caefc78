// The order of values as an order of unsigned numbers, in code that CUDA kernels include too.
#pragma once
#include <cstdint>
#include <type_traits>

#include <vesta/core/base/half.h>
#include <vesta/core/base/macros.h>

namespace vesta {

/// The unsigned type of T's size.
template <class T>
using SortKey = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

/// Returns a number that is larger the larger `v` is: the same for 0 and -0, and the largest for every NaN.
template <class T>
VESTA_HD VESTA_INLINE SortKey<T> sort_key(T v) {
  using Key = SortKey<T>;
  constexpr Key kSign = Key(Key(1) << (8 * sizeof(Key) - 1)), kAll = Key(~Key(0));
  if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? Key(Key(v) ^ kSign) : Key(v);
  } else {
    constexpr int kFraction = sizeof(T) == 8 ? 52 : sizeof(T) == 4 ? 23 : std::is_same_v<T, Half> ? 10 : 7;
    constexpr Key kInfinity = Key(Key(kAll >> 1) >> kFraction << kFraction);
    const Key bits = __builtin_bit_cast(Key, v), size = Key(bits & Key(~kSign));
    if (size == 0) return kSign;
    if (size > kInfinity) return kAll;
    return (bits & kSign) != 0 ? Key(~bits) : Key(bits | kSign);
  }
}

}  // namespace vesta
