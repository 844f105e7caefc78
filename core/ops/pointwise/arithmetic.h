// Arithmetic: negation, absolute value, roots, the four operations, remainder, powers, the larger and the smaller.
// Formulas are in the vocabulary of core/ops/math.h; V and T are a SIMD vector, a scalar, or (T) a Tensor.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>
#ifndef __CUDACC__  // a GPU divides integers as fast as floats
#include <vesta/core/ops/integer_division.h>
#endif

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

/// The base of step functions of one operand: the gradient is 0 wherever it exists.
struct Flat {
  static constexpr Zero backward{};
};

struct Neg {
  static constexpr auto doc = "neg(input): -x, elementwise.";
  static constexpr auto accepts = kNumbers;
  template <class V> VESTA_HD static V forward(V x) { return V(-x); }
  template <class T> VESTA_HD static T backward(T g, Unused, Unused) { return -g; }
};

struct Abs {
  static constexpr auto doc = "abs(input): |x|, elementwise; the modulus (a real tensor) for complex input.";
  static constexpr auto accepts = kNumbers;
  static constexpr auto result = Result::real;
  template <class V> VESTA_HD static auto forward(V x) { return math::abs(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::sgn(x); }
};

struct Sign : Flat {
  static constexpr auto doc = "sign(input): -1, 0 or 1, elementwise; 0 for NaN.";
  static constexpr auto accepts = kReals | kBool;
  template <class V> VESTA_HD static V forward(V x) { return math::sign(x); }
};

struct Sgn {
  static constexpr auto doc = "sgn(input): sign of a real x; x / |x| of a complex one (0 at 0).";
  static constexpr auto accepts = kNumbers | kBool;
  template <class V> VESTA_HD static V forward(V x) { return math::sgn(x); }
  // of a complex x: (g - y Re(g conj(y))) / |x|, which is 0 for a real one
  template <class T> VESTA_HD static T backward(T g, T x, T y) {
    return math::select(x == lit<T>(0), lit<T>(0), (g - math::conj(g) * y * y) * lit<T>(0.5) / math::abs(x));
  }
};

struct Square {
  static constexpr auto doc = "square(input): x * x, elementwise.";
  static constexpr auto accepts = kNumbers;
  static constexpr bool bool_to_int64 = true;
  template <class V> VESTA_HD static V forward(V x) { return math::product(x, x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::conj(x + x); }
};

struct Sqrt {
  static constexpr auto doc = "sqrt(input): the square root, elementwise; NaN for x < 0.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::sqrt(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g / math::conj(y + y); }
};

// The last step of a norm, whose slope is infinite at 0. The gradient is in terms of the result, as PyTorch's is: what
// a hook does to the result's gradient, it does in a second differentiation as well.
struct Root {
  static constexpr auto doc =
      "_root(input, exponent): x ** exponent of x >= 0, elementwise, exponent in (0, 1); the gradient at 0 is 0.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr bool long_formula = true;
  template <class V> VESTA_HD static V forward(V x, double exponent) {
    return exponent == 0.5 ? math::sqrt(x) : math::select(x == lit<V>(0), x, math::pow(x, lit<V>(exponent)));
  }
  template <class T> VESTA_HD static T backward(T g, Unused, T y, double exponent) {
    T safe = math::select(y == lit<T>(0), lit<T>(1), y);  // for the gradient of this formula
    T slope = exponent == 0.5 ? lit<T>(0.5) / safe : lit<T>(exponent) * math::pow(safe, lit<T>(1 - 1 / exponent));
    return math::select(y == lit<T>(0), lit<T>(0), g * slope);
  }
};

struct Rsqrt {
  static constexpr auto doc = "rsqrt(input): 1 / sqrt(x), elementwise; NaN for x < 0.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::rsqrt(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * lit<T>(-0.5) * math::conj(y * y * y); }
};

struct Reciprocal {
  static constexpr auto doc = "reciprocal(input): 1 / x, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::quotient(lit<V>(1), x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return -g * math::conj(y * y); }
};

struct Floor : Flat {
  static constexpr auto doc = "floor(input): the largest integer <= x, elementwise.";
  static constexpr auto accepts = kReals;
  template <class V> VESTA_HD static V forward(V x) { return math::floor(x); }
};

struct Ceil : Flat {
  static constexpr auto doc = "ceil(input): the smallest integer >= x, elementwise.";
  static constexpr auto accepts = kReals;
  template <class V> VESTA_HD static V forward(V x) { return math::ceil(x); }
};

struct ConjPhysical {
  static constexpr auto doc = "conj_physical(input): the complex conjugate, elementwise; a copy for real input.";
  static constexpr auto accepts = kNumbers | kBool;
  template <class V> VESTA_HD static V forward(V x) { return math::conj(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, Unused) { return math::conj(g); }
};

/// Raises where alpha is no integer, or none of the dtype, and the operands are integers.
VESTA_API void check_integer_alpha(const Tensor* const* in, double alpha);
/// Raises for a bool operand, as PyTorch does, and as check_integer_alpha().
VESTA_API void check_difference(const Tensor* const* in, double alpha);

struct Add {
  static constexpr auto doc = "add(input, other, alpha=1): x + alpha * y, elementwise with broadcasting.";
  static constexpr auto accepts = kNumbers | kBool;
  static constexpr bool parameters_are_elements = true;
  static constexpr auto check = &check_integer_alpha;
  template <class V> VESTA_HD static V forward(V a, V b, double alpha) { return V(a + math::scaled(b, alpha)); }
  static constexpr Pass backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, Unused, Unused, Unused, double alpha) {
    return g * lit<T>(alpha);
  }
  static bool passes_b(double alpha) { return alpha == 1; }
};

struct Sub {
  static constexpr auto doc = "sub(input, other, alpha=1): x - alpha * y, elementwise with broadcasting.";
  static constexpr auto accepts = kNumbers;
  static constexpr bool parameters_are_elements = true;
  static constexpr auto check = &check_difference;
  template <class V> VESTA_HD static V forward(V a, V b, double alpha) { return V(a - math::scaled(b, alpha)); }
  static constexpr Pass backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, Unused, Unused, Unused, double alpha) {
    if (alpha == 1) return -g;  // a complex g times -1 has NaN in the place of infinities
    return g * lit<T>(-alpha);
  }
};

struct Mul {
  static constexpr auto doc = "mul(input, other): x * y, elementwise with broadcasting.";
  static constexpr auto accepts = kNumbers | kBool;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::product(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, T b, Unused) { return g * math::conj(b); }
  template <class T> VESTA_HD static T backward_b(T g, T a, Unused, Unused) { return g * math::conj(a); }
};

struct Div {
  static constexpr auto doc = "div(input, other): x / y, elementwise with broadcasting; integers divide as floats.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::quotient(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, T b, Unused) { return g / math::conj(b); }
  // a, not the result: y = a / b; y += c is common, and a result that was written to could not be used.
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return -g * math::conj((a / b) / b); }
};

/// The base of step functions of two operands: the gradient is 0 wherever it exists.
struct Step {
  static constexpr Zero backward_a{};
  static constexpr Zero backward_b{};
};

/// Raises for an integer division whose divisor has a zero.
VESTA_API void check_integer_divisor(const Tensor* const* in);

struct FloorDivide : Step {
  static constexpr auto doc = "floor_divide(input, other): floor(x / y), elementwise with broadcasting.";
  static constexpr auto accepts = kReals;
  static constexpr auto check = &check_integer_divisor;
  static constexpr bool divides = true;
  static constexpr bool long_formula = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::floor_divide(a, b); }
};

struct TruncDivide : Step {
  static constexpr auto doc = "trunc_divide(input, other): x / y rounded towards zero, elementwise with broadcasting.";
  static constexpr auto accepts = kReals;
  static constexpr auto check = &check_integer_divisor;
  static constexpr bool divides = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::trunc_divide(a, b); }
};

struct Remainder {
  static constexpr auto doc =
      "remainder(input, other): x - y * floor(x / y), elementwise; the sign is y's (Python's %).";
  static constexpr auto accepts = kReals;
  static constexpr auto check = &check_integer_divisor;
  static constexpr bool divides = true;
  static constexpr bool long_formula = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::remainder(a, b); }
  static constexpr Pass backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return -g * math::floor(a / b); }
};

/// Raises for integers to a negative integer power.
VESTA_API void check_integer_exponent(const Tensor* const* in);

struct Pow {
  static constexpr auto doc = "pow(input, exponent): x ** y, elementwise with broadcasting.";
  static constexpr auto accepts = kNumbers;
  static constexpr auto check = &check_integer_exponent;
  static constexpr bool number_last = true;
  static constexpr bool long_formula = true;
  static constexpr double exponents[] = {2, 3, 4, 5, 6, 7, 8, -1, -2, -3, 0.5, -0.5};  // a CPU's loop for each
  /// On a GPU small powers are products: CUDA's pow is a hundred instructions, and 2 units of the last place off.
  template <class V> VESTA_HD static V power(V a, V b) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_floating_point_v<V>) {
      if (b == V(1)) return a;
      if (b == V(2)) return a * a;
      if (b == V(3)) return a * a * a;
    }
#endif
    return math::pow(a, b);
  }
  template <class V> VESTA_HD static V forward(V a, V b) {
    if constexpr (requires { a.raw; }) return power(a, b);  // vectors return a for b = 1; a test would cost 20 %
    else return math::select(b == lit<V>(1), a, power(a, b));
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    return math::select(b == lit<T>(0), lit<T>(0), g * math::conj(b * power(a, b - lit<T>(1))));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, Unused, T y) {
    // at x = 0 and y >= 0 (the power is 0 or 1) the slope is 0, where the formula has 0 * -inf
    T slope = g * math::conj(y * math::log(a));
    return math::select(a == lit<T>(0), math::select(math::abs(y) <= lit<T>(1), lit<T>(0), slope), slope);
  }
};

struct Maximum {
  static constexpr auto doc = "maximum(input, other): the larger, elementwise with broadcasting; NaN wins.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::maximum(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {  // equal values share the gradient
    return math::select(a == b, g * lit<T>(0.5), math::select(a < b, lit<T>(0), g));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) {
    return math::select(a == b, g * lit<T>(0.5), math::select(b < a, lit<T>(0), g));
  }
};

struct Minimum {
  static constexpr auto doc = "minimum(input, other): the smaller, elementwise with broadcasting; NaN wins.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::minimum(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    return math::select(a == b, g * lit<T>(0.5), math::select(b < a, lit<T>(0), g));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) {
    return math::select(a == b, g * lit<T>(0.5), math::select(a < b, lit<T>(0), g));
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
