// Exponentials and logarithms.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct Exp {
  static constexpr auto doc = "exp(input): e ** x, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  static constexpr bool exponent_is_operand = true;  // or less it: a CPU's loop tests several at once
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

struct Exp2 {
  static constexpr auto doc = "exp2(input): 2 ** x, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::exp2(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) {
    return g * math::conj(y) * lit<T>(0.69314718055994530942);  // log(2)
  }
};

struct Expm1 {
  static constexpr auto doc = "expm1(input): e ** x - 1, accurate near 0, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::expm1(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * math::conj(y + lit<T>(1)); }
};

struct Log2 {
  static constexpr auto doc = "log2(input): the logarithm to base 2, elementwise; NaN for x < 0, -inf for 0.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::log2(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g / math::conj(x * lit<T>(0.69314718055994530942));  // log(2)
  }
};

struct Log10 {
  static constexpr auto doc = "log10(input): the logarithm to base 10, elementwise; NaN for x < 0, -inf for 0.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::log10(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g / math::conj(x * lit<T>(2.3025850929940456840));  // log(10)
  }
};

// max + log(1 + e^-|a - b|); of equal infinities themselves, where a - b is NaN.
struct LogAddExp {
  static constexpr auto doc =
      "_logaddexp(input, other): log(e ** x + e ** y) of floats, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V a, V b) {
    V sum = math::maximum(a, b) + math::log1p(math::exp(-math::abs(a - b)));
    return math::select((a == b) & math::isinf(a), a, sum);
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) { return g * math::sigmoid(a - b); }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return g * math::sigmoid(b - a); }
};

struct LogAddExp2 {
  static constexpr auto doc = "logaddexp2(input, other): log2(2 ** x + 2 ** y), elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V a, V b) {
    V rest = math::log1p(math::exp2(-math::abs(a - b))) * lit<V>(1.4426950408889634074);  // log2(e)
    return math::select((a == b) & math::isinf(a), a, math::maximum(a, b) + rest);
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    return g * math::sigmoid((a - b) * lit<T>(0.69314718055994530942));  // log(2)
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) {
    return g * math::sigmoid((b - a) * lit<T>(0.69314718055994530942));
  }
};

struct Xlogy {
  static constexpr auto doc =
      "xlogy(input, other): x * log(y), and 0 for x = 0 unless y is NaN, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V a, V b) {
    V product = a * math::log(b);
    return math::select(b != b, b, math::select(a == lit<V>(0), lit<V>(0), product));
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    T safe = math::select(b <= lit<T>(0), lit<T>(1), b);  // 0 log 0 has the slope 0
    return g * math::log(math::select(a == lit<T>(0), safe, b));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return g * a / b; }
};

struct Xlog1py {
  static constexpr auto doc =
      "xlog1py(input, other): x * log(1 + y), and 0 for x = 0 unless y is NaN, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V a, V b) {
    V product = a * math::log1p(b);
    return math::select(b != b, b, math::select(a == lit<V>(0), lit<V>(0), product));
  }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) {
    T safe = math::select(b <= lit<T>(-1), lit<T>(0), b);
    return g * math::log1p(math::select(a == lit<T>(0), safe, b));
  }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return g * a / (b + lit<T>(1)); }
};

// log(z / (1 - z)); from 0.3 on by log1p of (2 z - 1) / (1 - z), which is exact near the zero at 1/2.
struct Logit {
  static constexpr auto doc =
      "logit(input, eps=None): log(z / (1 - z)), elementwise, of z = x limited to [eps, 1 - eps]; without eps, or with "
      "a negative one, z = x, and the result is NaN outside of [0, 1].";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x, Maybe<double> eps) {
    V z = x;
    if (eps.value_or(-1) >= 0) {  // the lower end first, as PyTorch has it: above 1/2, eps makes it the larger one
      const V low = lit<V>(eps.value), high = lit<V>(1) - low;
      z = math::select(x < low, low, math::select(x > high, high, x));
    }
    V rest = lit<V>(1) - z;
    V low = math::log(z / rest), high = math::log1p((z + z - lit<V>(1)) / rest);
    return math::select(z < lit<V>(0.3), low, high);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, Maybe<double> eps) {
    T slope = g / (x * (lit<T>(1) - x));
    const bool limits = eps.value_or(-1) >= 0;
    double low = limits ? eps.value : 0, outside = limits ? 0 : static_cast<double>(NAN);
    return math::select(x < lit<T>(low), lit<T>(outside), math::select(x > lit<T>(1 - low), lit<T>(outside), slope));
  }
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

// ---- Terms of losses, of an input x and its target t ----

struct BinaryCrossEntropyOfScore {
  static constexpr auto doc =
      "_binary_cross_entropy_of_score(input, target): -(t log s + (1 - t) log(1 - s)) for s = sigmoid(x), without "
      "overflow, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, V t) {
    const V log_one = math::minimum(x, lit<V>(0)) - math::log1p(math::exp(-math::abs(x)));
    return (lit<V>(1) - t) * x - log_one;
  }
  // not sigmoid(x) - t, which has no digits left where both are nearly 1
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused) {
    return g * ((lit<T>(1) - t) * math::sigmoid(x) - t * math::sigmoid(-x));
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, Unused, Unused) { return -(g * x); }
};

struct WeightedBinaryCrossEntropyOfScore {
  static constexpr auto doc =
      "_weighted_binary_cross_entropy_of_score(input, target, pos_weight): -(p t log s + (1 - t) log(1 - s)) for s = "
      "sigmoid(x), without overflow, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V log_one(V x) {
    return math::minimum(x, lit<V>(0)) - math::log1p(math::exp(-math::abs(x)));
  }
  template <class V> VESTA_HD static V forward(V x, V t, V p) {
    return (lit<V>(1) - t) * x - ((p - lit<V>(1)) * t + lit<V>(1)) * log_one(x);
  }
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, T p, Unused) {
    return g * ((lit<T>(1) - t) * math::sigmoid(x) - p * t * math::sigmoid(-x));
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, Unused, T p, Unused) {
    return -(g * (x + (p - lit<T>(1)) * log_one(x)));
  }
  template <class T> VESTA_HD static T backward_c(T g, T x, T t, Unused, Unused) { return -(g * (t * log_one(x))); }
};

struct SquaredDifference {
  static constexpr auto doc = "_squared_difference(input, target): (x - t) ** 2, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr bool long_formula = false;
  template <class V> VESTA_HD static V forward(V x, V t) {
    const V d = x - t;
    return d * d;
  }
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused) {
    const T d = x - t;
    return g * (d + d);
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused) {
    const T d = t - x;
    return g * (d + d);
  }
};

struct AbsoluteDifference {
  static constexpr auto doc = "_absolute_difference(input, target): |x - t|, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr bool long_formula = false;
  template <class V> VESTA_HD static V forward(V x, V t) { return math::abs(x - t); }
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused) { return g * math::sgn(x - t); }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused) { return g * math::sgn(t - x); }
};

struct HuberDifference {
  static constexpr auto doc =
      "_huber_difference(input, target, delta, scale): of d = x - t, scale times half the square for |d| <= delta, "
      "else scale * delta * (|d| - delta / 2), elementwise (Huber 1964).";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr bool long_formula = false;
  template <class V> VESTA_HD static V forward(V x, V t, double delta, double scale) {
    const V size = math::abs(x - t);
    const V near = size * size * lit<V>(0.5 * scale), far = (size - lit<V>(0.5 * delta)) * lit<V>(scale * delta);
    return math::select(size <= lit<V>(delta), near, far);
  }
  template <class T> VESTA_HD static T slope(T d, double delta, double scale) {
    const T far = math::select(d < lit<T>(0), lit<T>(-scale * delta), math::select(d != d, d, lit<T>(scale * delta)));
    return math::select(math::abs(d) < lit<T>(delta), d * lit<T>(scale), far);
  }
  // g stays outside, so that no product of the part that is not chosen is NaN in its own gradient
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused, double delta, double scale) {
    return g * slope(T(x - t), delta, scale);
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused, double delta, double scale) {
    return g * slope(T(t - x), delta, scale);
  }
};

struct Divergence {
  static constexpr auto doc = "_divergence(input, target): t (log t - x), elementwise; 0 log 0 is 0.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class T> VESTA_HD static T log_known(T t) { return math::log(math::select(t == lit<T>(0), lit<T>(1), t)); }
  template <class V> VESTA_HD static V forward(V x, V t) { return t * (log_known(t) - x); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, T t, Unused) { return -(g * t); }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused) {
    return g * (log_known(t) - x + math::select(t == lit<T>(0), lit<T>(0), lit<T>(1)));
  }
};

struct LogDivergence {
  static constexpr auto doc = "_log_divergence(input, target): e ** t (t - x), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, V t) { return math::exp(t) * (t - x); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, T t, Unused) { return -(g * math::exp(t)); }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused) {
    return g * math::exp(t) * (t - x + lit<T>(1));
  }
};

struct SoftMargin {
  static constexpr auto doc = "_soft_margin(input, target): log(1 + e ** -(t x)), without overflow, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, V t) {
    const V u = x * t;
    return math::log1p(math::exp(-math::abs(u))) - math::minimum(u, lit<V>(0));
  }
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused) { return -(g * t * math::sigmoid(-(x * t))); }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused) { return -(g * x * math::sigmoid(-(x * t))); }
};

struct ExpDifference {
  static constexpr auto doc = "_exp_difference(input, target): e ** x - t x, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, V t) { return math::exp(x) - t * x; }
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused) { return g * (math::exp(x) - t); }
  template <class T> VESTA_HD static T backward_b(T g, T x, Unused, Unused) { return -(g * x); }
};

struct MarginDifference {
  static constexpr auto doc = "_margin_difference(input, target, margin): max(margin - t x, 0), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr bool long_formula = false;
  template <class V> VESTA_HD static V forward(V x, V t, double margin) {
    return math::maximum(lit<V>(margin) - t * x, lit<V>(0));
  }
  // at 0 the slope is that of clamp_min
  template <class T> VESTA_HD static T slope(T x, T t, double margin, T other) {
    return math::select(lit<T>(margin) - t * x > lit<T>(0), -other, lit<T>(0));
  }
  template <class T> VESTA_HD static T backward_a(T g, T x, T t, Unused, double margin) {
    return g * slope(x, t, margin, t);
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, T t, Unused, double margin) {
    return g * slope(x, t, margin, x);
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
