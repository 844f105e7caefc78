// Special functions: gamma, the normal distribution, Bessel functions, orthogonal polynomials. Their values are
// computed in core/ops/special_math.h and core/ops/special_functions.h.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>
#include <vesta/core/ops/special_functions.h>
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

/// Raises for a negative order, and for one beyond 2^30.
VESTA_API void check_polygamma_order(const Tensor* const* in, int64_t n);

struct Polygamma {
  static constexpr auto doc =
      "polygamma(n, input): the n-th derivative of digamma, elementwise; digamma itself for n = 0. Error: a negative "
      "n.";
  static constexpr auto accepts = kFloats;
  static constexpr auto check = &check_polygamma_order;
  template <class V> VESTA_HD static V forward(V x, int64_t n) {
    if (n == 0) return math::digamma(x);
    return math::polygamma(n, x);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, int64_t n) { return g * math::polygamma(n + 1, x); }
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
  template <class V> VESTA_HD static V of_normal_cdf(V, V cdf) { return cdf; }
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

struct Entr {
  static constexpr auto doc = "entr(input): -x log(x), elementwise; 0 at 0, -inf below.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) {
    V safe = math::select(x > lit<V>(0), x, lit<V>(1));
    V other = math::select(x == lit<V>(0), lit<V>(0), math::select(x < lit<V>(0), lit<V>(-INFINITY), x));
    return math::select(x > lit<V>(0), -x * math::log(safe), other);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * (-math::log(x) - lit<T>(1)); }
};

/// The functions of one variable that are computed element by element: one kernel for all.
struct SpecialFunction {
  static constexpr auto doc = "_special_function(input, which): a function of math::SpecialFunction, elementwise.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  using Which = math::SpecialFunction;
  template <class V> VESTA_HD static V forward(V x, int64_t which) {
    return math::special_function(Which(int(which)), x);
  }
  template <class T> VESTA_HD static T slope(Which which, T x, T y) {
    T safe = math::select(x == lit<T>(0), lit<T>(1), x);
    switch (which) {
      case Which::bessel_j0: return -math::special_function(Which::bessel_j1, x);
      case Which::bessel_j1:
        return math::select(x == lit<T>(0), lit<T>(0.5), math::special_function(Which::bessel_j0, safe) - y / safe);
      case Which::bessel_y0: return -math::special_function(Which::bessel_y1, x);
      case Which::bessel_y1: return math::special_function(Which::bessel_y0, x) - y / x;
      case Which::bessel_k0: return -math::special_function(Which::bessel_k1, x);
      case Which::bessel_k1: return -math::special_function(Which::bessel_k0, x) - y / x;
      case Which::bessel_k0e: return y - math::special_function(Which::bessel_k1e, x);
      case Which::bessel_k1e: return y - math::special_function(Which::bessel_k0e, x) - y / x;
      case Which::airy_ai: return math::special_function(Which::airy_ai_slope, x);
      case Which::airy_ai_slope: return x * math::special_function(Which::airy_ai, x);
      case Which::erfcx: return lit<T>(2) * x * y - lit<T>(1.12837916709551257390);  // 2 / sqrt(pi)
      case Which::spherical_j0: return -math::special_function(Which::spherical_j1, x);
      case Which::spherical_j1:
        return math::select(x == lit<T>(0), lit<T>(1.0 / 3),
                            math::special_function(Which::spherical_j0, safe) - lit<T>(2) * y / safe);
    }
    return y;
  }
  template <class T> VESTA_HD static T backward(T g, T x, T y, int64_t which) {
    const Which function = Which(int(which));
    if constexpr (math::Numeric<T>)
      return g * math::lane_by_lane([=](double v, double w) { return slope_of_number(function, v, w); }, x, y);
    else return g * slope(function, x, y);
  }
  VESTA_HD __attribute__((noinline)) static double slope_of_number(Which which, double x, double y) {
    return slope(which, x, y);
  }
};

struct OrthogonalPolynomial {
  static constexpr auto doc =
      "_orthogonal_polynomial(input, n, family, order): a derivative of the polynomial of degree n of a family of "
      "math::Polynomials, elementwise with broadcasting.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  template <class V> VESTA_HD static V forward(V x, V n, int64_t family, int64_t order) {
    return math::orthogonal_polynomial(math::Polynomials(int(family)), x, n, int(order));
  }
  template <class T> VESTA_HD static T backward_a(T g, T x, T n, Unused, int64_t family, int64_t order) {
    return g * math::orthogonal_polynomial(math::Polynomials(int(family)), x, n, int(order) + 1);
  }
  // A degree counts without its fraction: a step.
  static constexpr Zero backward_b{};
};

struct Zeta {
  static constexpr auto doc =
      "zeta(input, other): the Hurwitz zeta function, the sum of (other + k) ** -input over k = 0, 1, ..., elementwise "
      "with broadcasting; inf at input 1 and at poles, NaN for input < 1.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  template <class V> VESTA_HD static V forward(V s, V q) { return math::zeta(s, q); }
  template <class T> VESTA_HD static T backward_a(T g, T s, T q, Unused) { return g * math::zeta_slope(s, q); }
  template <class T> VESTA_HD static T backward_b(T g, T s, T q, Unused) {
    return -g * s * math::zeta(T(s + lit<T>(1)), q);
  }
};

struct ZetaSlope {
  static constexpr auto doc =
      "_zeta_slope(input, other): the derivative of zeta(input, other) by input, elementwise with broadcasting; its "
      "own "
      "by input is NaN.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  template <class V> VESTA_HD static V forward(V s, V q) { return math::zeta_slope(s, q); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, Unused, Unused) { return g * lit<T>(NAN); }
  template <class T> VESTA_HD static T backward_b(T g, T s, T q, Unused) {
    T next = s + lit<T>(1);
    return -g * (math::zeta(next, q) + s * math::zeta_slope(next, q));
  }
};

struct Igamma {
  static constexpr auto doc =
      "igamma(input, other): the regularized lower incomplete gamma function P(a, x), the integral of t ** (a - 1) * "
      "e ** -t over t < x divided by gamma(a), elementwise with broadcasting; NaN for a < 0 or x < 0.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V a, V x) {
    return math::lane_by_lane([](double s, double v) { return math::incomplete_gamma(s, v, false); }, a, x);
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T x, Unused) { return g * math::igamma_slope(a, x); }
  template <class T> VESTA_HD static T backward_b(T g, T a, T x, Unused) { return g * math::density_of_gamma(a, x); }
};

struct Igammac {
  static constexpr auto doc =
      "igammac(input, other): the regularized upper incomplete gamma function, 1 - igamma(input, other), elementwise "
      "with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V a, V x) {
    return math::lane_by_lane([](double s, double v) { return math::incomplete_gamma(s, v, true); }, a, x);
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T x, Unused) { return -g * math::igamma_slope(a, x); }
  template <class T> VESTA_HD static T backward_b(T g, T a, T x, Unused) { return -g * math::density_of_gamma(a, x); }
};

struct IgammaSlope {
  static constexpr auto doc =
      "_igamma_slope(input, other): the derivative of igamma(input, other) by input, elementwise with broadcasting; "
      "its "
      "own by input is NaN.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  template <class V> VESTA_HD static V forward(V a, V x) { return math::igamma_slope(a, x); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, Unused, Unused) { return g * lit<T>(NAN); }
  template <class T> VESTA_HD static T backward_b(T g, T a, T x, Unused) {
    return g * math::density_of_gamma(a, x) * (math::log(x) - math::digamma(a));
  }
};

struct GammaDensity {
  static constexpr auto doc =
      "_gamma_density(input, other): the derivative of igamma(input, other) by other, other ** (input - 1) * e ** "
      "-other / gamma(input), elementwise with broadcasting.";
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  template <class V> VESTA_HD static V forward(V a, V x) { return math::density_of_gamma(a, x); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T x, T y) {
    return g * y * (math::log(x) - math::digamma(a));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T x, T y) {
    return g * y * ((a - lit<T>(1)) / x - lit<T>(1));
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
