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

struct BinaryCrossEntropy {
  static constexpr auto doc =
      "_binary_cross_entropy(input, target): -(t log x + (1 - t) log(1 - x)), logarithms at least -100, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class T> VESTA_HD static T bounded(T x) { return math::select(x < lit<T>(-100), lit<T>(-100), x); }
  template <class V> VESTA_HD static V forward(V x, V t) {
    return (t - lit<V>(1)) * bounded(math::log1p(-x)) - t * bounded(math::log(x));
  }
  // at 0 and 1 the slope is large but finite, as PyTorch has it
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused) {
    T v = (lit<T>(1) - x) * x;
    return g * (x - t) / math::select(v < lit<T>(1e-12), lit<T>(1e-12), v);
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, Unused, Unused) {
    return g * (bounded(math::log1p(-x)) - bounded(math::log(x)));
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
