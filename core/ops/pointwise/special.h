// Special functions: gamma, the normal distribution, Bessel functions. Their values are computed in
// core/ops/special_math.h.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>
#include <vesta/core/ops/special_math.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct Lgamma {
  static constexpr auto doc = "lgamma(input): the logarithm of |gamma(x)|, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::lgamma(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::digamma(x); }
};

struct Digamma {
  static constexpr auto doc = "digamma(input): the derivative of lgamma, elementwise; NaN at negative integers.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::digamma(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::polygamma(1, x); }
};

struct Polygamma {
  static constexpr auto doc = "_polygamma(input, n): the n-th derivative of digamma for n >= 1, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x, double n) { return math::polygamma(n, x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double n) { return g * math::polygamma(n + 1, x); }
};

struct Erfinv {
  static constexpr auto doc = "erfinv(input): the inverse of erf, elementwise; NaN outside of [-1, 1].";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::erfinv(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) {
    return g * lit<T>(0.88622692545275801365) * math::exp(y * y);  // sqrt(pi) / 2
  }
};

struct Ndtr {
  static constexpr auto doc =
      "ndtr(input): the standard normal distribution function, the integral of the density up to x, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::normal_cdf(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g * lit<T>(0.39894228040143267794) * math::exp(x * x * lit<T>(-0.5));  // 1 / sqrt(2 pi)
  }
};

struct Ndtri {
  static constexpr auto doc = "ndtri(input): the inverse of ndtr, elementwise; NaN outside of [0, 1].";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::normal_quantile(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) {
    return g * lit<T>(2.50662827463100050242) * math::exp(y * y * lit<T>(0.5));  // sqrt(2 pi)
  }
};

// Below -12, where ndtr loses its digits and then underflows, ndtr(x) = density(x) / -x * (1 - 1/x^2 + 3/x^4 - ...)
// (Abramowitz and Stegun, 26.2.12).
struct LogNdtr {
  static constexpr auto doc = "log_ndtr(input): log(ndtr(x)), accurate where ndtr is close to 0 or 1, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr double kFar = -12;
  /// Returns 1 - 1/x^2 + 3/x^4 - ... for x <= kFar.
  template <class T> VESTA_HD static T tail(T x) {
    T u = lit<T>(-1) / (x * x);
    T sum = lit<T>(1);
    for (int k = 19; k > 0; k -= 2) sum = lit<T>(1) + u * lit<T>(k) * sum;
    return sum;
  }
  template <class V> VESTA_HD static V forward(V x) {
    V far = math::select(x < lit<V>(kFar), x, lit<V>(kFar));
    V low = lit<V>(-0.5) * far * far - math::log(-far) - lit<V>(0.91893853320467274178) + math::log(tail(far));
    V cdf = math::normal_cdf(V(-math::abs(x)));
    V near = math::select(x < lit<V>(0), math::log(cdf), math::log1p(-cdf));
    return math::select(x < lit<V>(kFar), low, near);
  }
  template <class T> VESTA_HD static T backward(T g, T x, T y) {
    T far = math::select(x < lit<T>(kFar), x, lit<T>(kFar));
    T near = math::select(x < lit<T>(kFar), lit<T>(0), lit<T>(-0.5) * x * x - y - lit<T>(0.91893853320467274178));
    return g * math::select(x < lit<T>(kFar), -far / tail(far), math::exp(near));
  }
};

struct I0 {
  static constexpr auto doc = "i0(input): the modified Bessel function of the first kind of order 0, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::i0(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::i1(x); }
};

struct I0e {
  static constexpr auto doc = "i0e(input): e ** -|x| * i0(x), elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::i0e(x); }
  template <class T> VESTA_HD static T backward(T g, T x, T y) { return g * (math::i1e(x) - math::sgn(x) * y); }
};

struct I1 {
  static constexpr auto doc = "i1(input): the modified Bessel function of the first kind of order 1, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::i1(x); }
  // i0(x) - i1(x) / x, and 1/2 at 0
  template <class T> VESTA_HD static T backward(T g, T x, T y) {
    T safe = math::select(x == lit<T>(0), lit<T>(1), x);
    return g * math::select(x == lit<T>(0), lit<T>(0.5), math::i0(safe) - y / safe);
  }
};

struct I1e {
  static constexpr auto doc = "i1e(input): e ** -|x| * i1(x), elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::i1e(x); }
  template <class T> VESTA_HD static T backward(T g, T x, T y) {
    T safe = math::select(x == lit<T>(0), lit<T>(1), x);
    return g * math::select(x == lit<T>(0), lit<T>(0.5), math::i0e(safe) - y * (math::sgn(safe) + lit<T>(1) / safe));
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
