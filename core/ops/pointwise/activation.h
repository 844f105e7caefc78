// Activations of neural networks, and the error function they use.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

#include <limits>
#include <type_traits>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct Sigmoid {
  static constexpr auto doc = "sigmoid(input): 1 / (1 + e ** -x), elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  static constexpr bool exponent_is_operand = true;  // as of Exp
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
  static constexpr bool bounds_parameters = true;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, double slope) {
    return math::select(x > lit<V>(0), x, x * lit<V>(slope));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double slope) {
    return math::select(x > lit<T>(0), g, g * lit<T>(slope));
  }
  static bool result_stands_in(double slope) { return slope >= 0; }
};

// Dugas et al., "Incorporating second-order functional knowledge for better option pricing", 2000.
struct Softplus {
  static constexpr auto doc =
      "softplus(input, beta=1, threshold=20): log(1 + e ** (beta * x)) / beta; x itself where beta * x > threshold.";
  static constexpr auto accepts = kFloats;
  static constexpr bool bounds_parameters = true;
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

#ifdef __CUDA_ARCH__
/// The standard normal distribution function of x, and e^(-x^2 / 2).
struct NormalOnGpu {
  float cdf, bell;
};
/// Returns the hardware's reciprocal, or power of two, one instruction each; subnormal numbers are 0.
__device__ inline float reciprocal_on_gpu(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float exp2_on_gpu(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// Computes both in a third of the instructions of CUDA's normcdff, within 6 units of the last place, or, for results
/// of 16 bits, with a relative error of 1e-5. For x <= 0 the first is the second times a function of t = 1 / (1 + c
/// |x|) that a polynomial fits (a form of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x^2)
/// erfc(x) in 0 <= x < infinity", 1981); the coefficients have the least relative error down to x = -15, 3.2e-8
/// and 4.7e-6.
template <bool sixteen_bits>
__device__ inline NormalOnGpu normal_on_gpu(float x) {
  constexpr int kDegree = sixteen_bits ? 6 : 9;
  constexpr float kScale = sixteen_bits ? 0.31f : 0.35f;
  constexpr float kRough[] = {1.238607094e-01f, 1.204411760e-01f, 1.334302127e-01f,
                              1.574389823e-02f, 1.804510653e-01f, -7.392937690e-02f};
  constexpr float kFine[] = {1.396212578e-01f, 1.398643404e-01f,  1.198154911e-01f, 1.055748239e-01f, -2.326388657e-02f,
                             1.593929827e-01f, -2.559019327e-01f, 1.440608352e-01f, -2.916393243e-02f};
  const float a = fminf(fabsf(x), 20.0f), square = a * a;
  float bell;
  if constexpr (sixteen_bits) {
    bell = exp2_on_gpu(-0.72134752f * square);  // log2(e) / 2
  } else {
    const float rest = __fmaf_rn(a, a, -square);
    bell = expf(-0.5f * square) * __fmaf_rn(-0.5f, rest, 1.0f);
  }
  const float t = reciprocal_on_gpu(__fmaf_rn(kScale, a, 1.0f));
  float p = sixteen_bits ? kRough[5] : kFine[8];
#pragma unroll
  for (int i = kDegree - 2; i >= 0; --i) p = __fmaf_rn(p, t, sixteen_bits ? kRough[i < 6 ? i : 0] : kFine[i]);
  const float tail = bell * (p * t);
  return {x > 0.0f ? 1.0f - tail : tail, bell};
}
#endif

// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. Not written with erf: 1 + erf(x) cancels for x << 0.
struct GeluErf {
  static constexpr auto doc = "_gelu_erf(input): x * P(X <= x) for a standard normal X: x / 2 * erfc(-x / sqrt(2)).";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<V, float>) return x * normal_on_gpu<false>(x).cdf;
#endif
    return of_normal_cdf(x, math::normal_cdf(x));
  }
  template <class V> VESTA_HD static V of_normal_cdf(V x, V cdf) { return x * cdf; }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<T, float>) {
      return slope_on_gpu<false>(g, x);
    }
#endif
    if constexpr (std::is_same_v<T, Tensor>) {
      T density = lit<T>(0.3989422804014327) * math::exp(x * x * lit<T>(-0.5));  // 1 / sqrt(2 pi)
      return g * (lit<T>(0.5) * math::erfc(x * lit<T>(-0.7071067811865476)) + x * density);
    } else {
      return g * math::normal_slope(x);
    }
  }
#ifdef __CUDA_ARCH__
  // Of elements of 16 bits, for the device's kernels.
  __device__ static float forward_of_16_bits(float x) { return x * normal_on_gpu<true>(x).cdf; }
  __device__ static float backward_of_16_bits(float g, float x) { return slope_on_gpu<true>(g, x); }
  template <bool sixteen_bits>
  __device__ static float slope_on_gpu(float g, float x) {
    const NormalOnGpu n = normal_on_gpu<sixteen_bits>(x);
    return g * (n.cdf + x * (0.3989422804014327f * n.bell));  // 1 / sqrt(2 pi)
  }
#endif
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

// Clevert et al., "Fast and accurate deep network learning by exponential linear units", 2015.
struct Elu {
  static constexpr auto doc =
      "elu(input, alpha=1, scale=1, input_scale=1): scale * x for x > 0, else scale * alpha * (e ** (input_scale * x) "
      "- "
      "1), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool bounds_parameters = true;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, double alpha, double scale, double input_scale) {
    return math::select(x > lit<V>(0), x * lit<V>(scale), math::expm1(x * lit<V>(input_scale)) * lit<V>(alpha * scale));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double alpha, double scale, double input_scale) {
    T low = math::select(x > lit<T>(0), lit<T>(0), x);  // no infinity where the other branch is taken
    return g * math::select(x > lit<T>(0), lit<T>(scale),
                            math::exp(low * lit<T>(input_scale)) * lit<T>(alpha * scale * input_scale));
  }
};

/// Raises where alpha is 0.
VESTA_API void check_celu_alpha(const Tensor* const* in, double alpha);

// Barron, "Continuously differentiable exponential linear units", 2017.
struct Celu {
  static constexpr auto doc =
      "celu(input, alpha=1): x for x > 0, else alpha * (e ** (x / alpha) - 1), elementwise. Error: alpha 0.";
  static constexpr auto accepts = kFloats;
  static constexpr bool bounds_parameters = true;
  static constexpr bool integers_to_float = false;
  static constexpr auto check = &check_celu_alpha;
  template <class V> VESTA_HD static V forward(V x, double alpha) { return Elu::forward(x, alpha, 1, 1 / alpha); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double alpha) {
    return Elu::backward(g, x, Unused(), alpha, 1, 1 / alpha);
  }
};

// Klambauer et al., "Self-normalizing neural networks", 2017.
struct Selu {
  static constexpr auto doc =
      "selu(input): 1.0507... * x for x > 0, else 1.0507... * 1.6732... * (e ** x - 1), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr double kAlpha = 1.67326324235437728481704, kScale = 1.05070098735548049341933;
  template <class V> VESTA_HD static V forward(V x) { return Elu::forward(x, kAlpha, kScale, 1); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return Elu::backward(g, x, Unused(), kAlpha, kScale, 1);
  }
};

// Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation", 2017.
struct Silu {
  static constexpr auto doc = "silu(input): x * sigmoid(x), elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  static constexpr bool exponent_is_operand = true;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x) { return math::product(x, math::sigmoid(x)); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    T s = math::sigmoid(x);
    return g * math::conj(s * (lit<T>(1) + x * (lit<T>(1) - s)));
  }
};

// Misra, "Mish: A self regularized non-monotonic activation function", 2019. With e = exp(-|x|), tanh(softplus(x)) is a
// quotient without a second exponential: (1 + 2 e) / (1 + 2 e + 2 e^2) for x > 0, (e^2 + 2 e) / (e^2 + 2 e + 2) else.
struct Mish {
  static constexpr auto doc = "mish(input): x * tanh(log(1 + e ** x)), elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class T> VESTA_HD static T factor(T x) {
    auto positive = x > lit<T>(0);
    T e = math::exp(math::select(positive, -x, x)), square = e * e, twice = e + e;
    T above = math::select(positive, lit<T>(1) + twice, square + twice);
    T below = math::select(positive, above + square + square, above + lit<T>(2));
    return above / below;
  }
  template <class V> VESTA_HD static V forward(V x) { return x * factor(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    T t = factor(x);
    return g * (t + x * math::sigmoid(x) * (lit<T>(1) - t * t));
  }
};

/// Refuses bounds that no integer of the input's dtype satisfies, and those that are no int64.
VESTA_API void check_integer_bounds(const Tensor* const* in, double low, double high);

/// Returns whether every floating-point dtype holds the number exactly: integers to 256, and to 1 multiples of 1 / 128.
constexpr bool is_short(double x) {
  const double size = x < 0 ? -x : x, scaled = size <= 1 ? 128 * size : size;
  return size <= 256 && scaled == double(int64_t(scaled));
}

struct Hardtanh {
  static constexpr auto doc =
      "hardtanh(input, min_val=-1, max_val=1): x limited to [min_val, max_val], elementwise. The gradient at and "
      "beyond the bounds is 0.";
  static constexpr auto accepts = kReals;
  static constexpr bool parameters_are_elements = true;
  static constexpr auto check = &check_integer_bounds;
  /// Returns the constant `bound` as a V, for integers the nearest one.
  template <class V> VESTA_HD static V nearest(double bound) {
    if constexpr (std::is_integral_v<V>) {
      constexpr V lowest = std::numeric_limits<V>::min(), highest = std::numeric_limits<V>::max();
      if (bound <= double(lowest)) return lowest;
      if (bound >= double(highest)) return highest;
    }
    return lit<V>(bound);
  }
  template <class V> VESTA_HD static V forward(V x, double low, double high) {
    return math::minimum(math::maximum(x, nearest<V>(low)), nearest<V>(high));
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double low, double high) {
    return math::select(x <= lit<T>(low), lit<T>(0), math::select(x >= lit<T>(high), lit<T>(0), g));
  }
  static bool result_stands_in(double low, double high) { return is_short(low) && is_short(high); }
};

// Howard et al., "Searching for MobileNetV3", 2019.
struct Hardswish {
  static constexpr auto doc = "hardswish(input): x * min(max(x + 3, 0), 6) / 6, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x) {
    return x * math::minimum(math::maximum(x + lit<V>(3), lit<V>(0)), lit<V>(6)) / lit<V>(6);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    T middle = g * (x / lit<T>(3) + lit<T>(0.5));
    return math::select(x <= lit<T>(-3), lit<T>(0), math::select(x < lit<T>(3), middle, g));
  }
};

struct Hardsigmoid {
  static constexpr auto doc = "hardsigmoid(input): min(max(x + 3, 0), 6) / 6, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x) {
    return math::minimum(math::maximum(x + lit<V>(3), lit<V>(0)), lit<V>(6)) / lit<V>(6);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return math::select(x > lit<T>(-3), math::select(x < lit<T>(3), g / lit<T>(6), lit<T>(0)), lit<T>(0));
  }
};

/// Raises where lambd is negative.
VESTA_API void check_softshrink_lambd(const Tensor* const* in, double lambd);

struct Softshrink {
  static constexpr auto doc =
      "softshrink(input, lambd=0.5): x - lambd for x > lambd, x + lambd for x < -lambd, else 0. Error: a negative "
      "lambd.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  static constexpr auto check = &check_softshrink_lambd;
  template <class V> VESTA_HD static V forward(V x, double lambd) {
    V inner = math::select(x < lit<V>(-lambd), x + lit<V>(lambd), math::select(x != x, x, lit<V>(0)));
    return math::select(x > lit<V>(lambd), x - lit<V>(lambd), inner);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double lambd) {
    return math::select(math::abs(x) <= lit<T>(lambd), lit<T>(0), g);
  }
};

struct Hardshrink {
  static constexpr auto doc = "hardshrink(input, lambd=0.5): 0 for -lambd <= x <= lambd, else x, elementwise.";
  static constexpr auto accepts = kFloats;
  static constexpr bool parameters_are_elements = true;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, double lambd) {
    return math::select((x >= lit<V>(-lambd)) & (x <= lit<V>(lambd)), lit<V>(0), x);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double lambd) {
    return math::select(x >= lit<T>(-lambd), math::select(x <= lit<T>(lambd), lit<T>(0), g), g);
  }
};

/// Refuses numbers that the integers of the input's dtype do not hold.
VESTA_API void check_integer_threshold(const Tensor* const* in, double threshold, double value);

struct Threshold {
  static constexpr auto doc = "threshold(input, threshold, value): x for x > threshold, else value, elementwise.";
  static constexpr auto accepts = kReals;
  static constexpr bool parameters_are_elements = true;
  static constexpr auto check = &check_integer_threshold;
  template <class V> VESTA_HD static V forward(V x, double threshold, double value) {
    return math::select(x <= lit<V>(threshold), lit<V>(value), x);
  }
  template <class T> VESTA_HD static T backward(T g, T x, Unused, double threshold, double) {
    return math::select(x <= lit<T>(threshold), lit<T>(0), g);
  }
  static bool result_stands_in(double threshold, double value) { return value <= threshold && is_short(value); }
};

struct Prelu {
  static constexpr auto doc = "_prelu(input, weight): x for x > 0, else weight * x, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, V weight) { return math::select(x > lit<V>(0), x, weight * x); }
  template <class T> VESTA_HD static T backward_a(T g, T x, T weight, Unused) {
    return math::select(x > lit<T>(0), g, weight * g);
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, Unused, Unused) {
    return math::select(x > lit<T>(0), lit<T>(0), x * g);
  }
};

// Dauphin et al., "Language modeling with gated convolutional networks", 2016.
struct Gated {
  static constexpr auto doc = "_gated(input, gate): x * sigmoid(gate), elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V x, V gate) { return x * math::sigmoid(gate); }
  template <class T> VESTA_HD static T backward_a(T g, Unused, T gate, Unused) { return g * math::sigmoid(gate); }
  template <class T> VESTA_HD static T backward_b(T g, T x, T gate, Unused) {
    T s = math::sigmoid(gate);
    return g * x * (s * (lit<T>(1) - s));
  }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
