// Trigonometric and hyperbolic functions; angles in radians.
#pragma once
#include <vesta/core/ops/pointwise_struct.h>
#include <vesta/core/ops/special_math.h>

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
#ifdef __CUDA_ARCH__
  // Of elements of 16 bits, for the device's kernels: 1 - 2 / (e^2a + 1), and a - a^3 / 3 below 1/16, where that would
  // cancel; off by 2^-18 of the value.
  __device__ static float forward_of_16_bits(float x) {
    const float a = fabsf(x);
    float power, quotient;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(2.885390082f * a));  // 2 log2(e)
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(power + 1.0f));
    const float far = __fmaf_rn(-2.0f, quotient, 1.0f), near = __fmaf_rn(a * a * a, -0.333333333f, a);
    return copysignf(a < 0.0625f ? near : far, x);
  }
#endif
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

struct Tan {
  static constexpr auto doc = "tan(input): the tangent of x radians, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::tan(x); }
  template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * math::conj(lit<T>(1) + y * y); }
};

struct Asin {
  static constexpr auto doc =
      "asin(input): the angle in [-pi/2, pi/2] whose sine is x, elementwise; NaN outside of [-1, 1].";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::asin(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g * math::conj(math::rsqrt(lit<T>(1) - x * x));
  }
};

struct Acos {
  static constexpr auto doc =
      "acos(input): the angle in [0, pi] whose cosine is x, elementwise; NaN outside of [-1, 1].";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::acos(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return -g * math::conj(math::rsqrt(lit<T>(1) - x * x));
  }
};

struct Atan {
  static constexpr auto doc = "atan(input): the angle in [-pi/2, pi/2] whose tangent is x, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::atan(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g / math::conj(lit<T>(1) + x * x); }
};

struct Sinh {
  static constexpr auto doc = "sinh(input): the hyperbolic sine, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::sinh(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::conj(math::cosh(x)); }
};

struct Cosh {
  static constexpr auto doc = "cosh(input): the hyperbolic cosine, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::cosh(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g * math::conj(math::sinh(x)); }
};

struct Asinh {
  static constexpr auto doc = "asinh(input): the inverse hyperbolic sine, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::asinh(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g * math::conj(math::rsqrt(lit<T>(1) + x * x));
  }
};

struct Acosh {
  static constexpr auto doc = "acosh(input): the inverse hyperbolic cosine, elementwise; NaN for x < 1.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::acosh(x); }
  // two roots, not that of x^2 - 1, which has another branch for complex numbers and cancels near 1
  template <class T> VESTA_HD static T backward(T g, T x, Unused) {
    return g * math::conj(math::rsqrt(x - lit<T>(1)) * math::rsqrt(x + lit<T>(1)));
  }
};

struct Atanh {
  static constexpr auto doc = "atanh(input): the inverse hyperbolic tangent, elementwise; NaN outside of [-1, 1].";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) { return math::atanh(x); }
  template <class T> VESTA_HD static T backward(T g, T x, Unused) { return g / math::conj(lit<T>(1) - x * x); }
};

struct Sinc {
  static constexpr auto doc = "sinc(input): sin(pi x) / (pi x), 1 at 0, elementwise.";
  static constexpr auto accepts = kFloats | kComplexes;
  template <class V> VESTA_HD static V forward(V x) {
    V sine, angle = math::scaled(x, 3.14159265358979323846);
    if constexpr (requires { x < x; }) sine = math::sin_pi(x);
    else sine = math::sin(angle);
    return math::select(x == lit<V>(0), lit<V>(1), math::quotient(sine, angle));
  }
  template <class T> VESTA_HD static T backward(T g, T x, T y) {
    T safe = math::select(x == lit<T>(0), lit<T>(1), x);
    T slope = (math::cos(safe * lit<T>(3.14159265358979323846)) - y) / safe;
    return g * math::conj(math::select(x == lit<T>(0), lit<T>(0), slope));
  }
};

struct Deg2Rad {
  static constexpr auto doc = "deg2rad(input): degrees to radians, x * pi / 180, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return x * lit<V>(0.017453292519943295769); }
  template <class T> VESTA_HD static T backward(T g, Unused, Unused) { return g * lit<T>(0.017453292519943295769); }
};

struct Rad2Deg {
  static constexpr auto doc = "rad2deg(input): radians to degrees, x * 180 / pi, elementwise.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return x * lit<V>(57.295779513082320877); }
  template <class T> VESTA_HD static T backward(T g, Unused, Unused) { return g * lit<T>(57.295779513082320877); }
};

struct Angle {
  static constexpr auto doc = "_angle(input): the angle of a real number, pi for x < 0, else 0; NaN for NaN.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V x) { return math::angle(x); }
  static constexpr Zero backward{};
};

/// Raises where two real operands are not of one dtype.
VESTA_API void check_parts(const Tensor* const* in);

/// Complex numbers of real operands: the formulas have two values, a real and an imaginary part, and so has g.
struct OfParts {
  static constexpr auto accepts = set_of(DType::float32) | set_of(DType::float64);
  static constexpr bool integers_to_float = false;
  static constexpr auto result = Result::complex;
  static constexpr auto check = &check_parts;
};

struct MakeComplex : OfParts {
  static constexpr auto doc =
      "complex(real, imag): a complex tensor of two real ones of one dtype, float32 or float64, with broadcasting.";
  template <class V> VESTA_HD static Both<V> forward(V re, V im) { return {re, im}; }
  template <class T> VESTA_HD static T backward_a(T g, Unused, Unused, Unused, Unused, Unused) { return g; }
  template <class T> VESTA_HD static T backward_b(T, T g_im, Unused, Unused, Unused, Unused) { return g_im; }
};

struct Polar : OfParts {
  static constexpr auto doc =
      "polar(abs, angle): abs * cos(angle) + i abs * sin(angle), a complex tensor of two real ones of one dtype, "
      "float32 or float64, with broadcasting.";
  template <class V> VESTA_HD static Both<V> forward(V size, V angle) {
    return {V(size * math::cos(angle)), V(size * math::sin(angle))};
  }
  template <class T> VESTA_HD static T backward_a(T g_re, T g_im, Unused, T angle, Unused, Unused) {
    return g_re * math::cos(angle) + g_im * math::sin(angle);
  }
  template <class T> VESTA_HD static T backward_b(T g_re, T g_im, Unused, Unused, T re, T im) {
    return g_im * re - g_re * im;
  }
};

struct Hypot {
  static constexpr auto doc =
      "hypot(input, other): sqrt(x * x + y * y) without overflow on the way, elementwise with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool integers_to_float = false;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::hypot(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, Unused, T y) { return g * (a / y); }
  template <class T> VESTA_HD static T backward_b(T g, Unused, T b, T y) { return g * (b / y); }
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
