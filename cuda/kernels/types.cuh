// Element types on the device: the C++ type of each DType there, how it is loaded and stored, and the complex type
// that the formulas of core/ops/pointwise compute with.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/math.h>
#include <vesta/cuda/kernels/device.cuh>

/// Unrolls the next loop fully, or not at all.
#ifdef __CUDACC__
#define VESTA_UNROLL _Pragma("unroll")
#define VESTA_ROLLED _Pragma("unroll 1")
#else
#define VESTA_UNROLL
#define VESTA_ROLLED
#endif

namespace vesta::cuda {

/// A complex number with std::complex's layout, and with the functions that math::NAME(x) finds by argument-dependent
/// lookup.
template <class T>
struct alignas(2 * sizeof(T)) Complex {
  using value_type = T;
  T re, im;
  Complex() = default;
  VESTA_HD constexpr Complex(T r, T i = T(0)) : re(r), im(i) {}
};

#define VESTA_COMPLEX template <class T> VESTA_HD VESTA_INLINE
VESTA_COMPLEX Complex<T> operator+(Complex<T> a, Complex<T> b) { return {a.re + b.re, a.im + b.im}; }
VESTA_COMPLEX Complex<T> operator-(Complex<T> a, Complex<T> b) { return {a.re - b.re, a.im - b.im}; }
VESTA_COMPLEX Complex<T> operator-(Complex<T> a) { return {-a.re, -a.im}; }
VESTA_COMPLEX Complex<T> operator*(Complex<T> a, Complex<T> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/// Divides without overflow on the way (Smith, "Algorithm 116: Complex division", CACM 1962).
VESTA_COMPLEX Complex<T> operator/(Complex<T> a, Complex<T> b) {
  if (math::abs(b.re) >= math::abs(b.im)) {
    if (b.re == T(0) && b.im == T(0)) return {a.re / math::abs(b.re), a.im / math::abs(b.im)};
    const T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  const T ratio = b.re / b.im, scale = T(1) / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
VESTA_COMPLEX bool operator==(Complex<T> a, Complex<T> b) { return a.re == b.re && a.im == b.im; }
VESTA_COMPLEX bool operator!=(Complex<T> a, Complex<T> b) { return !(a == b); }

VESTA_COMPLEX Complex<T> select(bool mask, Complex<T> a, Complex<T> b) { return mask ? a : b; }
VESTA_COMPLEX Complex<T> conj(Complex<T> z) { return {z.re, -z.im}; }
VESTA_COMPLEX T abs(Complex<T> z) { return math::hypot(z.re, z.im); }
VESTA_COMPLEX T angle(Complex<T> z) { return math::atan2(z.im, z.re); }
VESTA_COMPLEX bool isnan(Complex<T> z) { return z.re != z.re || z.im != z.im; }
VESTA_COMPLEX bool isinf(Complex<T> z) { return math::isinf(z.re) || math::isinf(z.im); }
VESTA_COMPLEX bool isfinite(Complex<T> z) { return math::isfinite(z.re) && math::isfinite(z.im); }
VESTA_COMPLEX Complex<T> sgn(Complex<T> z) {
  const T size = abs(z);
  return size == T(0) ? Complex<T>(T(0)) : Complex<T>(z.re / size, z.im / size);
}
VESTA_COMPLEX Complex<T> exp(Complex<T> z) {
  const T size = math::exp(z.re);
  if (z.im == T(0)) return {size, z.im};
  return {size * math::cos(z.im), size * math::sin(z.im)};
}
VESTA_COMPLEX Complex<T> log(Complex<T> z) { return {math::log(abs(z)), angle(z)}; }
VESTA_COMPLEX Complex<T> sqrt(Complex<T> z) {  // Kahan's half angles: no cancellation on either side of the cut
  if (z.re == T(0) && z.im == T(0)) return {T(0), z.im};
  const T root = math::sqrt((abs(z) + math::abs(z.re)) / T(2)), other = z.im / (T(2) * root);
  return z.re >= T(0) ? Complex<T>(root, other) : Complex<T>(math::abs(other), math::copysign(root, z.im));
}
VESTA_COMPLEX Complex<T> rsqrt(Complex<T> z) { return Complex<T>(T(1)) / sqrt(z); }
/// Computes log(1 + z) by core/ops/math.h's rule: its real part is log1p(x (2 + x) + y^2) / 2 where 1 + z cancels.
VESTA_COMPLEX Complex<T> log1p(Complex<T> z) {
  const T x = z.re, y = z.im;
  if (!(math::abs(x) <= T(0.5) && math::abs(y) <= T(0.5))) return log(Complex<T>(x + T(1), y));
  return {math::log1p(x * (T(2) + x) + y * y) / T(2), math::atan2(y, x + T(1))};
}
/// Computes e^z - 1 as expm1(x) cos y - 2 sin^2(y / 2) + i e^x sin y, which does not cancel near 0.
VESTA_COMPLEX Complex<T> expm1(Complex<T> z) {
  const T half_sine = math::sin(z.im / T(2));
  return {math::expm1(z.re) * math::cos(z.im) - T(2) * half_sine * half_sine, math::exp(z.re) * math::sin(z.im)};
}
VESTA_COMPLEX Complex<T> sin(Complex<T> z) {
  return {math::sin(z.re) * math::cosh(z.im), math::cos(z.re) * math::sinh(z.im)};
}
VESTA_COMPLEX Complex<T> cos(Complex<T> z) {
  return {math::cos(z.re) * math::cosh(z.im), -math::sin(z.re) * math::sinh(z.im)};
}
/// Computes tanh as (sinh 2x + i sin 2y) / (cosh 2x + cos 2y), with 1 where cosh overflows.
VESTA_COMPLEX Complex<T> tanh(Complex<T> z) {
  if (math::abs(z.re) > T(20)) {
    const T decay = T(4) * math::exp(T(-2) * math::abs(z.re));
    return {math::copysign(T(1), z.re), math::sin(z.im) * math::cos(z.im) * decay};
  }
  const T s = math::sinh(z.re), c = math::cosh(z.re), t = math::sin(z.im), u = math::cos(z.im);
  const T below = s * s + u * u;
  return {s * c / below, t * u / below};
}
VESTA_COMPLEX Complex<T> sinh(Complex<T> z) {
  return {math::sinh(z.re) * math::cos(z.im), math::cosh(z.re) * math::sin(z.im)};
}
VESTA_COMPLEX Complex<T> cosh(Complex<T> z) {
  return {math::cosh(z.re) * math::cos(z.im), math::sinh(z.re) * math::sin(z.im)};
}
/// Multiplies by i, and by -i.
VESTA_COMPLEX Complex<T> turned(Complex<T> z) { return {-z.im, z.re}; }
VESTA_COMPLEX Complex<T> turned_back(Complex<T> z) { return {z.im, -z.re}; }
VESTA_COMPLEX Complex<T> tan(Complex<T> z) { return turned_back(tanh(turned(z))); }
// The inverse functions by roots of 1 - z and 1 + z, which keep the branch cuts and the small part of a result (Kahan,
// "Branch cuts for complex elementary functions", 1987).
VESTA_COMPLEX Complex<T> asin(Complex<T> z) {
  const Complex<T> low = sqrt(Complex<T>(T(1) - z.re, -z.im)), high = sqrt(Complex<T>(T(1) + z.re, z.im));
  return {math::atan2(z.re, (low * high).re), math::asinh(low.re * high.im - low.im * high.re)};
}
VESTA_COMPLEX Complex<T> acos(Complex<T> z) {
  const Complex<T> low = sqrt(Complex<T>(T(1) - z.re, -z.im)), high = sqrt(Complex<T>(T(1) + z.re, z.im));
  return {T(2) * math::atan2(low.re, high.re), math::asinh(high.re * low.im - high.im * low.re)};
}
VESTA_COMPLEX Complex<T> acosh(Complex<T> z) {
  const Complex<T> low = sqrt(Complex<T>(z.re - T(1), z.im)), high = sqrt(Complex<T>(z.re + T(1), z.im));
  return {math::asinh(low.re * high.re + low.im * high.im), T(2) * math::atan2(low.im, high.re)};
}
VESTA_COMPLEX Complex<T> asinh(Complex<T> z) { return turned_back(asin(turned(z))); }
/// Computes the real part of atanh for |x|, where the argument of log1p is far from -1; it is an odd function.
VESTA_COMPLEX Complex<T> atanh(Complex<T> z) {
  const T x = math::abs(z.re), y = z.im, below = (T(1) - x) * (T(1) - x) + y * y;
  const T real = math::copysign(math::log1p(T(4) * x / below) / T(4), z.re);
  return {real, math::atan2(y + y, (T(1) - x) * (T(1) + x) - y * y) / T(2)};
}
VESTA_COMPLEX Complex<T> atan(Complex<T> z) { return turned_back(atanh(turned(z))); }
VESTA_COMPLEX Complex<T> exp2(Complex<T> z) {
  return exp(Complex<T>(z.re * T(0.693147180559945309417), z.im * T(0.693147180559945309417)));
}
VESTA_COMPLEX Complex<T> log2(Complex<T> z) {
  const Complex<T> natural = log(z);
  return {natural.re * T(1.44269504088896340736), natural.im * T(1.44269504088896340736)};
}
VESTA_COMPLEX Complex<T> log10(Complex<T> z) {
  const Complex<T> natural = log(z);
  return {natural.re * T(0.434294481903251827651), natural.im * T(0.434294481903251827651)};
}
VESTA_COMPLEX Complex<T> sigmoid(Complex<T> z) { return Complex<T>(T(1)) / (Complex<T>(T(1)) + exp(-z)); }
/// Raises a complex base, by core/ops/math.h's rules: z^0 is 1, whole powers up to 100 are products.
VESTA_COMPLEX Complex<T> pow(Complex<T> base, Complex<T> exponent) {
  const T re = exponent.re;
  if (re == T(0) && exponent.im == T(0)) return {T(1), T(0)};
  if (base.re == T(0) && base.im == T(0)) {
    const T value = re > T(0) ? T(0) : static_cast<T>(NAN);
    return {value, value};
  }
  if (re == T(0.5) && exponent.im == T(0)) return sqrt(base);
  if (exponent.im != T(0) || !(math::abs(re) <= T(100)) || math::trunc(re) != re) return exp(exponent * log(base));
  Complex<T> square = base, result(T(1), T(0));
  bool first = true;
  for (int left = static_cast<int>(math::abs(re)); left != 0; left >>= 1) {
    if ((left & 1) != 0) {
      result = first ? square : result * square;
      first = false;
    }
    if (left > 1) square = square * square;
  }
  return re < T(0) ? Complex<T>(T(1), T(0)) / result : result;
}
#undef VESTA_COMPLEX

/// The map from a DType to the device's element type.
template <DType D>
struct DeviceType_;
#define VESTA_X(name, type_) \
  template <>                \
  struct DeviceType_<DType::name> { using type = type_; };
VESTA_X(bool_, bool)
VESTA_X(uint8, uint8_t)
VESTA_X(int8, int8_t)
VESTA_X(int16, int16_t)
VESTA_X(int32, int32_t)
VESTA_X(int64, int64_t)
VESTA_X(float16, Half)
VESTA_X(bfloat16, BFloat16)
VESTA_X(float32, float)
VESTA_X(float64, double)
VESTA_X(complex64, Complex<float>)
VESTA_X(complex128, Complex<double>)
#undef VESTA_X
template <DType D>
using device_t = typename DeviceType_<D>::type;

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<Complex<T>> = true;

/// The type an element computes in: float for 16-bit floats.
template <class T>
struct Compute {
  using type = T;
};
template <>
struct Compute<Half> {
  using type = float;
};
template <>
struct Compute<BFloat16> {
  using type = float;
};
template <class T>
using compute_of = typename Compute<T>::type;

#ifdef __CUDA_ARCH__
/// Rounds in one instruction, to the bits of core/base/half.h; a NaN becomes the canonical one.
__device__ __forceinline__ BFloat16 rounded_to_bfloat16(float v) {
  uint16_t bits;
  asm("{ .reg .b16 b; cvt.rn.bf16.f32 b, %1; mov.b16 %0, b; }" : "=h"(bits) : "f"(v));
  return BFloat16::from_bits(bits);
}
#endif

/// Converts between element types by the CPU's rules: 16-bit types go through float, a complex number gives its real
/// part, any value but zero is true; floats to integers saturate and NaN becomes 0, so that every result is defined.
template <class To, class From>
VESTA_HD VESTA_INLINE To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>) {
      using R = typename To::value_type;
      return To(static_cast<R>(v.re), static_cast<R>(v.im));
    } else if constexpr (std::is_same_v<To, bool>) {
      return v.re != 0 || v.im != 0;
    } else {
      return convert<To>(v.re);
    }
  } else if constexpr (is_complex_type<To>) {
    return To(convert<typename To::value_type>(v));
  } else if constexpr (is_half_type<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (is_half_type<To>) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<To, BFloat16>) return rounded_to_bfloat16(static_cast<float>(v));
#endif
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr To low = std::is_signed_v<To> ? static_cast<To>(To(1) << (8 * sizeof(To) - 1)) : To(0);
    constexpr To high = static_cast<To>(~low);
    if (!(v == v)) return 0;
    if (v <= static_cast<From>(low)) return low;
    if (v >= static_cast<From>(high)) return high;
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

/// Calls `f.template operator()<T>()` for the device's type of `d`, which must be in Set; returns false if it is not.
template <DTypeSet Set, class F>
bool visit_device(DType d, F&& f) {
  switch (d) {
#define VESTA_X(name_, type, text)                                  \
  case DType::name_:                                                \
    if constexpr (Set.has(DType::name_)) {                          \
      f.template operator()<device_t<DType::name_>>();              \
      return true;                                                  \
    }                                                               \
    return false;
    VESTA_DTYPES(VESTA_X)
#undef VESTA_X
  }
  return false;
}

}  // namespace vesta::cuda
