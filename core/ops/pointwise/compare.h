// Comparisons and logic: results are bool (bitwise ops keep their type); none has a gradient.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

/// The base of comparisons.
struct Comparison {
  static constexpr auto accepts = kReals | kBool;
  static constexpr auto result = Result::boolean;
  static constexpr bool differentiable = false;
  static constexpr bool rounds_numbers = true;  // float16(0.1) == 0.1
  static constexpr bool overwrites = true;      // in place the old value has no influence: its gradient is zero
};
struct OfAllTypes : Comparison {
  static constexpr auto accepts = kAllTypes;
};
struct Bitwise {
  static constexpr auto accepts = kIntegers | kBool;
  static constexpr bool integers_to_float = false;
  static constexpr bool differentiable = false;
};

struct IsNan : OfAllTypes {
  static constexpr auto doc = "isnan(input): whether x is NaN, elementwise.";
  template <class V> VESTA_HD static auto forward(V x) { return x != x; }
};
struct IsInf : OfAllTypes {
  static constexpr auto doc = "isinf(input): whether x is infinite, of either sign, elementwise.";
  template <class V> VESTA_HD static auto forward(V x) { return math::isinf(x); }
};
struct IsFinite : OfAllTypes {
  static constexpr auto doc = "isfinite(input): whether x is neither infinite nor NaN, elementwise.";
  template <class V> VESTA_HD static auto forward(V x) { return math::isfinite(x); }
};
struct Eq : OfAllTypes {
  static constexpr auto doc = "eq(input, other): x == y, elementwise with broadcasting.";
  template <class V> VESTA_HD static auto forward(V a, V b) { return a == b; }
};
struct IsClose : OfAllTypes {
  static constexpr auto doc =
      "_isclose(input, other, rtol, atol, equal_nan): whether x == y, or |x - y| <= atol + rtol * |y| of finite "
      "numbers, or both are NaN and that counts, elementwise with broadcasting.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  template <class V> VESTA_HD static auto forward(V a, V b, double rtol, double atol, bool equal_nan) {
    const V allowed = math::abs(b) * lit<V>(rtol) + lit<V>(atol);
    const auto near = (math::abs(a - b) <= allowed) & math::isfinite(a) & math::isfinite(b), close = (a == b) | near;
    return equal_nan ? close | ((a != a) & (b != b)) : close;
  }
};
struct Ne : OfAllTypes {
  static constexpr auto doc = "ne(input, other): x != y, elementwise with broadcasting.";
  template <class V> VESTA_HD static auto forward(V a, V b) { return a != b; }
};
struct Lt : Comparison {
  static constexpr auto doc = "lt(input, other): x < y, elementwise with broadcasting.";
  template <class V> VESTA_HD static auto forward(V a, V b) { return a < b; }
};
struct Le : Comparison {
  static constexpr auto doc = "le(input, other): x <= y, elementwise with broadcasting.";
  template <class V> VESTA_HD static auto forward(V a, V b) { return a <= b; }
};
struct Gt : Comparison {
  static constexpr auto doc = "gt(input, other): x > y, elementwise with broadcasting.";
  template <class V> VESTA_HD static auto forward(V a, V b) { return a > b; }
};
struct Ge : Comparison {
  static constexpr auto doc = "ge(input, other): x >= y, elementwise with broadcasting.";
  template <class V> VESTA_HD static auto forward(V a, V b) { return a >= b; }
};

/// The members that ops on truth values share: operands of another dtype count as x != 0.
struct OfTruth : Comparison {
  static constexpr auto accepts = kBool;
  static constexpr bool integers_to_float = false;
  static constexpr bool of_truth = true;
  static constexpr bool overwrites = false;  // PyTorch records nothing here
};
struct LogicalNot : OfTruth {
  static constexpr auto doc = "logical_not(input): x == 0, elementwise.";
  VESTA_HD static bool forward(bool x) { return !x; }
};
struct LogicalAnd : OfTruth {
  static constexpr auto doc = "logical_and(input, other): x != 0 and y != 0, elementwise with broadcasting.";
  VESTA_HD static bool forward(bool a, bool b) { return a & b; }
};
struct LogicalOr : OfTruth {
  static constexpr auto doc = "logical_or(input, other): x != 0 or y != 0, elementwise with broadcasting.";
  VESTA_HD static bool forward(bool a, bool b) { return a | b; }
};
struct LogicalXor : OfTruth {
  static constexpr auto doc = "logical_xor(input, other): exactly one of x, y != 0, elementwise with broadcasting.";
  VESTA_HD static bool forward(bool a, bool b) { return a != b; }
};

struct BitwiseNot : Bitwise {
  static constexpr auto doc = "bitwise_not(input): ~x for integers, not x for bool, elementwise.";
  template <class V> VESTA_HD static V forward(V x) {
    if constexpr (std::is_same_v<V, bool>) return !x;
    else return V(~x);
  }
};
struct BitwiseAnd : Bitwise {
  static constexpr auto doc = "bitwise_and(input, other): x & y, elementwise with broadcasting.";
  template <class V> VESTA_HD static V forward(V a, V b) { return V(a & b); }
};
struct BitwiseOr : Bitwise {
  static constexpr auto doc = "bitwise_or(input, other): x | y, elementwise with broadcasting.";
  template <class V> VESTA_HD static V forward(V a, V b) { return V(a | b); }
};
struct BitwiseXor : Bitwise {
  static constexpr auto doc = "bitwise_xor(input, other): x ^ y, elementwise with broadcasting.";
  template <class V> VESTA_HD static V forward(V a, V b) { return V(a ^ b); }
};

struct SignBit : Comparison {
  static constexpr auto doc =
      "signbit(input): whether the sign of x is negative, that of -0.0 and NaN too, elementwise.";
  template <class V> VESTA_HD static auto forward(V x) { return math::signbit(x); }
};
struct IsPosInf : Comparison {
  static constexpr auto doc = "isposinf(input): whether x is positive infinity, elementwise.";
  template <class V> VESTA_HD static auto forward(V x) { return math::isinf(x) & (x > lit<V>(0)); }
};
struct IsNegInf : Comparison {
  static constexpr auto doc = "isneginf(input): whether x is negative infinity, elementwise.";
  template <class V> VESTA_HD static auto forward(V x) { return math::isinf(x) & (x < lit<V>(0)); }
};

/// The base of integer arithmetic.
struct IntegerArithmetic : Bitwise {
  static constexpr auto accepts = kIntegers;
};
struct LeftShift : IntegerArithmetic {
  static constexpr auto doc =
      "bitwise_left_shift(input, other): x * 2 ** y, wrapping; 0 where y is negative or at least the number of bits.";
  template <class V> VESTA_HD static V forward(V a, V b) { return math::left_shift(a, b); }
};
struct RightShift : IntegerArithmetic {
  static constexpr auto doc =
      "bitwise_right_shift(input, other): floor(x / 2 ** y); 0 or -1, by the sign of x, where y is negative or at "
      "least "
      "the number of bits.";
  template <class V> VESTA_HD static V forward(V a, V b) { return math::right_shift(a, b); }
};
struct Gcd : IntegerArithmetic {
  static constexpr auto doc =
      "gcd(input, other): the greatest common divisor, not negative, elementwise with broadcasting; of 0 and 0 it is "
      "0.";
  template <class V> VESTA_HD static V forward(V a, V b) { return math::gcd(a, b); }
};
struct Lcm : IntegerArithmetic {
  static constexpr auto doc =
      "lcm(input, other): the least common multiple, not negative, elementwise with broadcasting; 0 if either is 0.";
  template <class V> VESTA_HD static V forward(V a, V b) { return math::lcm(a, b); }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
