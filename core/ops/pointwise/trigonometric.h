// Trigonometric and hyperbolic functions; angles in radians.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct Sin {
  static constexpr auto doc = "sin(input): the sine of x radians, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::sin(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::conj(math::cos(x)); }
};

struct Cos {
  static constexpr auto doc = "cos(input): the cosine of x radians, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::cos(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return -g * math::conj(math::sin(x)); }
};

struct Tanh {
  static constexpr auto doc = "tanh(input): the hyperbolic tangent, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::tanh(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * math::conj(lit<T>(1) - y * y); }
};

struct Atan2 {
  static constexpr auto doc =
      "atan2(input, other): the angle of the point (other, input) in radians, in [-pi, pi], elementwise with "
      "broadcasting.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::atan2(a, b); }
  // at the origin the slope is 0, as PyTorch has it
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    T squares = a * a + b * b;
    return math::select(squares == lit<T>(0), lit<T>(0), g * b / squares);
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) {
    T squares = a * a + b * b;
    return math::select(squares == lit<T>(0), lit<T>(0), -g * a / squares);
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
