// Exponentials and logarithms.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct Exp {
  static constexpr auto doc = "exp(input): e ** x, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::exp(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * math::conj(y); }
};

struct Log {
  static constexpr auto doc = "log(input): the natural logarithm, elementwise; NaN for x < 0, -inf for 0.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::log(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g / math::conj(x); }
};

struct Log1p {
  static constexpr auto doc = "log1p(input): log(1 + x), accurate near 0, elementwise; NaN for x < -1, -inf for -1.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::log1p(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g / math::conj(x + lit<T>(1)); }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
