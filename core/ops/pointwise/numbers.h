// Rounding, remainders, signs, neighbours, extremes that ignore NaN, interpolation, and sums with a factor.
#pragma once
#include <vesta/core/ops/pointwise/arithmetic.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

/// Raises for `decimals` with integers.
VESTA_API void check_round_decimals(const Tensor* const* in, int64_t decimals);

struct Round {
  static constexpr auto doc =
      "round(input, decimals=0): the nearest number with that many decimals (negative: tens, hundreds, ...), halves to "
      "the even one. Error: decimals of integers.";
  static constexpr auto accepts = kReals;
  static constexpr auto check = &check_round_decimals;
  template <class V> VESTA_HD static V forward(V x, int64_t decimals) {
    if constexpr (std::is_integral_v<V>) {
      return x;
    } else {
      if (decimals == 0) return math::round(x);
      double power = 1;
      for (int64_t k = 0; k < math::abs(decimals) && k < 400; ++k) power *= 10;
      V factor = lit<V>(power);
      return decimals < 0 ? math::round(x / factor) * factor : math::round(x * factor) / factor;
    }
  }
  static constexpr Zero backward{};
};

struct Trunc : Flat {
  static constexpr auto doc = "trunc(input): x without its fraction, elementwise.";
  static constexpr auto accepts = kReals;
  template <class V> VESTA_HD static V forward(V x) { return math::trunc(x); }
};

struct Frac {
  static constexpr auto doc = "frac(input): x - trunc(x), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x) { return x - math::trunc(x); }
  static constexpr Pass backward{};
};

struct NanToNum {
  static constexpr auto doc =
      "_nan_to_num(input, nan, posinf, neginf): x, with numbers in the place of NaN and infinities.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, double nan, double posinf, double neginf) {
    V finite = math::select(math::isinf(x), math::select(x > lit<V>(0), lit<V>(posinf), lit<V>(neginf)), x);
    return math::select(x != x, lit<V>(nan), finite);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double, double, double) {
    return math::select(math::isfinite(x), g, lit<T>(0));
  }
};

struct Fmod {
  static constexpr auto doc =
      "fmod(input, other): x - y * trunc(x / y), elementwise; the sign is x's (C's fmod). Error: an integer zero.";
  static constexpr auto accepts = kReals;
  static constexpr auto check = &check_integer_divisor;
  static constexpr bool divides = true;
  static constexpr bool long_formula = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::fmod(a, b); }
  static constexpr Pass backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return -g * math::trunc(a / b); }
};

// Where both are equal, or the other one is NaN, the first operand takes the gradient, as in PyTorch.
struct Fmax {
  static constexpr auto doc =
      "fmax(input, other): the larger, of a NaN and a number the number, elementwise with broadcasting.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::fmax(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    const T shared = math::select(a == b, g * lit<T>(0.5), g);  // equal values share the gradient
    return math::select(a >= b, shared, math::select(b != b, g, lit<T>(0)));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) {
    const T lost = math::select(a == b, g * lit<T>(0.5), lit<T>(0));
    return math::select(a >= b, lost, math::select(b != b, lit<T>(0), g));
  }
};

struct Fmin {
  static constexpr auto doc =
      "fmin(input, other): the smaller, of a NaN and a number the number, elementwise with broadcasting.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::fmin(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    const T shared = math::select(a == b, g * lit<T>(0.5), g);  // equal values share the gradient
    return math::select(a <= b, shared, math::select(b != b, g, lit<T>(0)));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) {
    const T lost = math::select(a == b, g * lit<T>(0.5), lit<T>(0));
    return math::select(a <= b, lost, math::select(b != b, lit<T>(0), g));
  }
};

struct Copysign {
  static constexpr auto doc = "copysign(input, other): |x| with the sign of y, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::copysign(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    return g * (math::sgn(a) * math::copysign(lit<T>(1), b));
  }
  static constexpr Zero backward_b{};
};

struct NextAfter {
  static constexpr auto doc = "nextafter(input, other): the number next to x towards y, elementwise with broadcasting.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::nextafter(a, b); }
  // As PyTorch has it: a step of one unit in the last place goes with x, and is the constant y where x is y.
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) { return math::select(a == b, lit<T>(0), g); }
  static constexpr Zero backward_b{};
};

struct Frexp {
  static constexpr auto doc =
      "frexp(input): a named tuple (mantissa, exponent), x = mantissa * 2 ** exponent, 0.5 <= |mantissa| < 1, "
      "elementwise; the exponent is int32. 0, infinities and NaN are their own mantissas, with exponent 0.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr auto second = Result::int32;
  template <class V> VESTA_HD static Both<V> forward(V x) {
    V exponent;
    V mantissa = math::frexp(x, exponent);
    return {mantissa, exponent};
  }
  // g / 2^exponent in two steps: each power is a number, which 2^exponent is not for the largest x.
  template <class T> VESTA_HD static T backward(T g, Unused, Unused, T exponent) {
    T half = math::trunc(exponent * lit<T>(0.5));
    return g / math::exp2(half) / math::exp2(T(exponent - half));
  }
};

/// Raises where the tensors are not of one dtype.
VESTA_API void check_heaviside(const Tensor* const* in);

struct Heaviside {
  static constexpr auto doc = "heaviside(input, values): 0 for x < 0, values for x = 0, 1 for x > 0; broadcasting.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr auto check = &check_heaviside;
  template <class V> VESTA_HD static V forward(V x, V values) {
    return math::select(x == lit<V>(0), values, math::select(x > lit<V>(0), lit<V>(1), lit<V>(0)));
  }
  static constexpr Zero backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, T x, Unused, Unused) {
    return math::select(x == lit<T>(0), g, lit<T>(0));
  }
};

/// Raises where the tensors are not of one dtype, a float or complex one.
VESTA_API void check_lerp(const Tensor* const* in);

// From the nearer end, so that weights 0 and 1 give the ends exactly, as PyTorch has it.
struct Lerp {
  static constexpr auto doc =
      "lerp(input, end, weight): x + weight * (end - x), elementwise with broadcasting; weight is a tensor or a "
      "number.";
  static constexpr auto accepts = kFloats | kComplexes;
  static constexpr bool integers_to_float = false;
  static constexpr auto check = &check_lerp;
  template <class V> VESTA_HD static V forward(V a, V b, V weight) {
    V way = V(b - a);
    return math::select(math::abs(weight) < lit<decltype(math::abs(weight))>(0.5), V(a + math::product(weight, way)),
                        V(b - math::product(way, V(lit<V>(1) - weight))));
  }
  template <class T> VESTA_HD static T backward_a(T g, Unused, Unused, T weight, Unused) {
    return g * math::conj(lit<T>(1) - weight);
  }
  template <class T> VESTA_HD static T backward_b(T g, Unused, Unused, T weight, Unused) {
    return g * math::conj(weight);
  }
  template <class T> VESTA_HD static T backward_c(T g, T a, T b, Unused, Unused) { return g * math::conj(b - a); }
};

/// Raises where value is no integer, or none of the dtype, and the operands are integers.
VESTA_API void check_integer_value(const Tensor* const* in, double value);
/// Raises for two integer operands of a quotient, as PyTorch does.
VESTA_API void check_quotient(const Tensor* const* in, double value);

struct Addcmul {
  static constexpr auto doc =
      "addcmul(input, tensor1, tensor2, value=1): x + value * tensor1 * tensor2, elementwise with broadcasting.";
  static constexpr auto accepts = kNumbers;
  static constexpr bool bounds_parameters = true;
  static constexpr auto check = &check_integer_value;
  template <class V> VESTA_HD static V forward(V a, V b, V c, double value) {
    return V(a + math::product(math::scaled(b, value), c));
  }
  static constexpr Pass backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, Unused, Unused, T c, Unused, double value) {
    return g * (math::conj(c) * lit<T>(value));
  }
  template <class T> VESTA_HD static T backward_c(T g, Unused, T b, Unused, Unused, double value) {
    return g * (math::conj(b) * lit<T>(value));
  }
};

struct Addcdiv {
  static constexpr auto doc =
      "addcdiv(input, tensor1, tensor2, value=1): x + value * tensor1 / tensor2, elementwise with broadcasting. Error: "
      "integers.";
  static constexpr auto accepts = kFloats | kComplexes;
  static constexpr bool bounds_parameters = true;
  static constexpr bool integers_to_float = false;
  static constexpr auto check = &check_quotient;
  template <class V> VESTA_HD static V forward(V a, V b, V c, double value) {
    return V(a + math::quotient(math::scaled(b, value), c));
  }
  static constexpr Pass backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, Unused, Unused, T c, Unused, double value) {
    return g * (lit<T>(value) / math::conj(c));
  }
  template <class T> VESTA_HD static T backward_c(T g, Unused, T b, T c, Unused, double value) {
    return -g * math::conj(b / (c * c) * lit<T>(value));
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
