// The list of element types and sets of them, in a header small enough for device code to include.
#pragma once
#include <cstdint>

namespace vesta {

// The one list of element types: X(enumerator, C++ type, PyTorch's name), ordered by promotion within a category.
#define VESTA_DTYPES(X)                 \
  X(bool_, bool, "bool")                \
  X(uint8, uint8_t, "uint8")            \
  X(int8, int8_t, "int8")               \
  X(int16, int16_t, "int16")            \
  X(int32, int32_t, "int32")            \
  X(int64, int64_t, "int64")            \
  X(float16, ::vesta::Half, "float16")  \
  X(bfloat16, ::vesta::BFloat16, "bfloat16") \
  X(float32, float, "float32")          \
  X(float64, double, "float64")         \
  X(complex64, ::vesta::complex64, "complex64") \
  X(complex128, ::vesta::complex128, "complex128")

/// An element type.
enum class DType : uint8_t {
#define VESTA_X(name, type, text) name,
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
};
inline constexpr int kNumDTypes = 12;

inline constexpr uint8_t kItemSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
/// Returns the bytes of one element.
constexpr int64_t itemsize(DType d) { return kItemSizes[int(d)]; }

/// A set of element types, one bit each.
struct DTypeSet {
  uint16_t bits = 0;
  constexpr bool has(DType d) const { return bits >> int(d) & 1; }
  friend constexpr DTypeSet operator|(DTypeSet a, DTypeSet b) { return {uint16_t(a.bits | b.bits)}; }
};
constexpr DTypeSet set_of(DType d) { return {uint16_t(1u << int(d))}; }
inline constexpr DTypeSet kBool = set_of(DType::bool_);
inline constexpr DTypeSet kIntegers = {0b111110};
inline constexpr DTypeSet kFloats = {0b1111000000};
inline constexpr DTypeSet kComplexes = {0b110000000000};
inline constexpr DTypeSet kReals = kIntegers | kFloats;
inline constexpr DTypeSet kNumbers = kReals | kComplexes;
inline constexpr DTypeSet kAllTypes = kNumbers | kBool;

constexpr bool is_bool(DType d) { return d == DType::bool_; }
constexpr bool is_integral(DType d) { return kIntegers.has(d); }  // without bool
constexpr bool is_float(DType d) { return kFloats.has(d); }
constexpr bool is_complex(DType d) { return kComplexes.has(d); }
/// Returns whether a gradient can flow through values of this type.
constexpr bool is_differentiable(DType d) { return is_float(d) || is_complex(d); }

/// Returns float32 for complex64 and float64 for complex128; any other type unchanged.
constexpr DType real_type(DType d) {
  return d == DType::complex64 ? DType::float32 : d == DType::complex128 ? DType::float64 : d;
}
/// Returns the complex type whose parts hold values of `d` (float64 gives complex128, all else complex64).
constexpr DType complex_type(DType d) {
  return d == DType::float64 || d == DType::complex128 ? DType::complex128 : DType::complex64;
}
}  // namespace vesta
