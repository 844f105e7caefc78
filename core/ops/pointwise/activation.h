// Activations of neural networks, and the error function they use.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct Sigmoid {
  static constexpr auto doc = "sigmoid(input): 1 / (1 + e ** -x), elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::sigmoid(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * math::conj((lit<T>(1) - y) * y); }
};

struct Relu {
  static constexpr auto doc = "relu(input): max(x, 0), elementwise; NaN stays NaN.";
  static constexpr auto accepts = kReals;
  template <class V> VESTA_HD static V forward(V x) { return math::maximum(x, lit<V>(0)); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return math::select(y <= lit<T>(0), lit<T>(0), g); }
};

struct LeakyRelu {
  static constexpr auto doc = "leaky_relu(input, negative_slope=0.01): x for x > 0, else negative_slope * x.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, double slope) {
    return math::select(x > lit<V>(0), x, x * lit<V>(slope));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double slope) {
    return math::select(x > lit<T>(0), g, g * lit<T>(slope));
  }
};

// Dugas et al., "Incorporating second-order functional knowledge for better option pricing", 2000.
struct Softplus {
  static constexpr auto doc =
      "softplus(input, beta=1, threshold=20): log(1 + e ** (beta * x)) / beta; x itself where beta * x > threshold.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, double beta, double threshold) {
    V u = x * lit<V>(beta);
    return math::select(u > lit<V>(threshold), x, math::log1p(math::exp(u)) / lit<V>(beta));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double beta, double threshold) {
    T u = x * lit<T>(beta);
    return math::select(u > lit<T>(threshold), g, g * math::sigmoid(u));
  }
};

// Not log(sigmoid(x)), which is -inf for x << 0 and loses all digits for x >> 0.
struct LogSigmoid {
  static constexpr auto doc = "logsigmoid(input): log(1 / (1 + e ** -x)), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x) {
    return math::minimum(x, lit<V>(0)) - math::log1p(math::exp(-math::abs(x)));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::sigmoid(-x); }
};

struct Erf {
  static constexpr auto doc =
      "erf(input): the error function 2 / sqrt(pi) * integral of e ** -t^2 from 0 to x, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::erf(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g * lit<T>(1.1283791670955126) * math::exp(-(x * x));  // 2 / sqrt(pi)
  }
};

struct Erfc {
  static constexpr auto doc = "erfc(input): 1 - erf(x), accurate where that cancels, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::erfc(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g * lit<T>(-1.1283791670955126) * math::exp(-(x * x));
  }
};

// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. Not written with erf: 1 + erf(x) cancels for x << 0.
struct GeluErf {
  static constexpr auto doc = "_gelu_erf(input): x * P(X <= x) for a standard normal X: x / 2 * erfc(-x / sqrt(2)).";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return x * math::normal_cdf(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    T density = lit<T>(0.3989422804014327) * math::exp(x * x * lit<T>(-0.5));  // 1 / sqrt(2 pi)
    return g * (lit<T>(0.5) * math::erfc(x * lit<T>(-0.7071067811865476)) + x * density);
  }
};

// The same paper's approximation; x / 2 * (1 + tanh(u)) = x * sigmoid(2 u) keeps the tail for x << 0.
struct GeluTanh {
  static constexpr auto doc = "_gelu_tanh(input): x * sigmoid(2 u), u = sqrt(2 / pi) * (x + 0.044715 x^3).";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) {
    return x * math::sigmoid(lit<V>(1.5957691216057308) * (x + lit<V>(0.044715) * x * x * x));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    T s = math::sigmoid(lit<T>(1.5957691216057308) * (x + lit<T>(0.044715) * x * x * x));
    T slope = lit<T>(1.5957691216057308) * (lit<T>(1) + lit<T>(0.134145) * x * x);
    return g * (s + x * s * (lit<T>(1) - s) * slope);
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
