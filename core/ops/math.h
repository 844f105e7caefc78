// The primitives of op formulas, written once for every carrier (value type).
//
//   template <class V> VESTA_HD static V forward(V x) { return math::select(x > math::lit<V>(0), x, math::expm1(x)); }
//
// V is one of
//   float, double         on a CUDA device
//   Vec<float>, Vec<double>   on the host (core/cpu/simd.h, found by argument-dependent lookup, as is Tensor)
//   integers, bool        scalars on both
//   std::complex          on the host; cuda::Complex on a device (argument-dependent lookup)
// Calls may be qualified (math::exp(x)) or come after `using math::exp`.
//
// Host code must not compute float or double tensors with the scalar functions here: they are the C library's, while
// Vec's are SLEEF's, and body and tail of one tensor would differ in the last bit. A tail is a padded Vec.
//
// Everything is forced inline or lives in the namespace of its instruction set: Note [No weak symbols] in
// core/cpu/simd.h.
#pragma once

#include <vesta/core/base/macros.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#ifndef __CUDACC__
#include <complex>  // device code has a carrier of its own, found like any other by argument-dependent lookup
#endif

namespace vesta::math {
inline namespace VESTA_ISA_NS {

template <class T>
inline constexpr bool is_complex = false;
#ifndef __CUDACC__
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
#endif

/// True for the types that this file computes itself: arithmetic types and std::complex. The functions of others are
/// found by argument-dependent lookup.
template <class T>
concept Scalar = std::is_arithmetic_v<T> || is_complex<T>;
template <class T>
concept Real = std::is_floating_point_v<T>;
template <class T>
concept Integer = std::is_integral_v<T>;
template <class T>
concept Complex = is_complex<T>;

// ---- constants ------------------------------------------------------------------------------------------------------

/// The maker of a constant of carrier V from a double. Another carrier (Tensor) specialises it.
template <class V>
struct Literal {
  VESTA_HD VESTA_INLINE static V make(double value) {
    if constexpr (is_complex<V>) {
      return V(static_cast<typename V::value_type>(value));
    } else if constexpr (std::is_arithmetic_v<V>) {
      return static_cast<V>(value);
    } else {
      return V(static_cast<typename V::value_type>(value));
    }
  }
};

/// Returns the constant `value` as a V: lit<V>(0.5) * x.
template <class V>
VESTA_HD VESTA_INLINE V lit(double value) {
  return Literal<V>::make(value);
}

}  // namespace VESTA_ISA_NS

// Note [Finding a carrier's own functions]
// math::exp(x) for an x that is no scalar must call the exp of x's namespace. The call is made from adl_call, where a
// deleted function of the same name keeps ordinary lookup from finding anything above (an Op object vesta::exp would
// otherwise switch argument-dependent lookup off).
namespace adl_call {
#define VESTA_MATH_POISON(name) void name() = delete;
#define VESTA_MATH_UNARY(X)                                                                                           \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(rsqrt) X(cbrt) X(sin) X(cos) X(tan) X(asin)      \
  X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(normal_cdf)                     \
  X(normal_slope) X(lgamma) X(sigmoid) X(floor) X(ceil) X(trunc) X(round) X(abs) X(sign) X(sgn) X(conj) X(isnan)      \
  X(isinf) X(isfinite) X(signbit)
#define VESTA_MATH_BINARY(X)                                                                                           \
  X(pow) X(atan2) X(fmod) X(hypot) X(copysign) X(maximum) X(minimum) X(fmax) X(fmin) X(nextafter)
VESTA_MATH_UNARY(VESTA_MATH_POISON)
VESTA_MATH_BINARY(VESTA_MATH_POISON)
void select() = delete;
void frexp() = delete;
#undef VESTA_MATH_POISON

inline namespace VESTA_ISA_NS {
#define VESTA_MATH_CALL1(name)                                  \
  template <class V>                                            \
  VESTA_HD VESTA_INLINE auto call_##name(const V& x) {          \
    return name(x);                                             \
  }
#define VESTA_MATH_CALL2(name)                                          \
  template <class V>                                                    \
  VESTA_HD VESTA_INLINE auto call_##name(const V& a, const V& b) {      \
    return name(a, b);                                                  \
  }
VESTA_MATH_UNARY(VESTA_MATH_CALL1)
VESTA_MATH_BINARY(VESTA_MATH_CALL2)
template <class M, class V>
VESTA_HD VESTA_INLINE auto call_select(const M& mask, const V& a, const V& b) {
  return select(mask, a, b);
}
template <class V>
VESTA_HD VESTA_INLINE V call_frexp(const V& x, V& exponent) {
  return frexp(x, exponent);
}
#undef VESTA_MATH_CALL1
#undef VESTA_MATH_CALL2
}  // namespace VESTA_ISA_NS
}  // namespace adl_call

inline namespace VESTA_ISA_NS {

#define VESTA_MATH_FORWARD1(name)                               \
  template <class V>                                            \
    requires(!Scalar<V>)                                        \
  VESTA_HD VESTA_INLINE auto name(const V& x) {                 \
    return adl_call::call_##name(x);                            \
  }
#define VESTA_MATH_FORWARD2(name)                                       \
  template <class V>                                                    \
    requires(!Scalar<V>)                                                \
  VESTA_HD VESTA_INLINE auto name(const V& a, const V& b) {             \
    return adl_call::call_##name(a, b);                                 \
  }
VESTA_MATH_UNARY(VESTA_MATH_FORWARD1)
VESTA_MATH_BINARY(VESTA_MATH_FORWARD2)
#undef VESTA_MATH_FORWARD1
#undef VESTA_MATH_FORWARD2
#undef VESTA_MATH_UNARY
#undef VESTA_MATH_BINARY

/// Chooses a where `mask` holds, else b, without a branch on vectors. Scalars: mask is a bool (or an int made of bools
/// by & and |).
template <class V>
  requires Scalar<V>
VESTA_HD VESTA_INLINE V select(bool mask, V a, V b) {
  return mask ? a : b;
}
template <class M, class V>
  requires(!Scalar<V>)
VESTA_HD VESTA_INLINE auto select(const M& mask, const V& a, const V& b) {
  return adl_call::call_select(mask, a, b);
}

// ---- float and double -----------------------------------------------------------------------------------------------

// The C names: on a device CUDA's functions, on the host the C library's.
#define VESTA_MATH_C1(name)                                                        \
  VESTA_HD VESTA_INLINE float name(float x) { return ::name##f(x); }               \
  VESTA_HD VESTA_INLINE double name(double x) { return ::name(x); }
#define VESTA_MATH_C2(name)                                                           \
  VESTA_HD VESTA_INLINE float name(float a, float b) { return ::name##f(a, b); }      \
  VESTA_HD VESTA_INLINE double name(double a, double b) { return ::name(a, b); }
VESTA_MATH_C1(exp)
VESTA_MATH_C1(exp2)
VESTA_MATH_C1(expm1)
VESTA_MATH_C1(log)
VESTA_MATH_C1(log2)
VESTA_MATH_C1(log10)
VESTA_MATH_C1(log1p)
VESTA_MATH_C1(sqrt)
VESTA_MATH_C1(cbrt)
VESTA_MATH_C1(sin)
VESTA_MATH_C1(cos)
VESTA_MATH_C1(tan)
VESTA_MATH_C1(asin)
VESTA_MATH_C1(acos)
VESTA_MATH_C1(atan)
VESTA_MATH_C1(sinh)
VESTA_MATH_C1(cosh)
VESTA_MATH_C1(tanh)
VESTA_MATH_C1(asinh)
VESTA_MATH_C1(acosh)
VESTA_MATH_C1(atanh)
VESTA_MATH_C1(erf)
VESTA_MATH_C1(erfc)
VESTA_MATH_C1(lgamma)
VESTA_MATH_C1(floor)
VESTA_MATH_C1(ceil)
VESTA_MATH_C1(trunc)
VESTA_MATH_C2(pow)
VESTA_MATH_C2(atan2)
VESTA_MATH_C2(fmod)
VESTA_MATH_C2(hypot)
VESTA_MATH_C2(copysign)
VESTA_MATH_C2(fmax)
VESTA_MATH_C2(fmin)
VESTA_MATH_C2(nextafter)
#undef VESTA_MATH_C1
#undef VESTA_MATH_C2

/// Rounds to an integer, ties to even, as torch.round does.
VESTA_HD VESTA_INLINE float round(float x) { return ::rintf(x); }
VESTA_HD VESTA_INLINE double round(double x) { return ::rint(x); }

template <Real T>
VESTA_HD VESTA_INLINE T rsqrt(T x) {
  return T(1) / sqrt(x);
}

/// Computes 1 / (1 + e^-x), for negative x as e^x / (1 + e^x): nothing overflows and tails keep their accuracy.
template <Real T>
VESTA_HD VESTA_INLINE T sigmoid(T x) {
  const T e = exp(x < T(0) ? x : -x);
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

/// Computes the standard normal distribution function, erfc(-x / sqrt 2) / 2. Exact gelu is x normal_cdf(x).
template <Real T>
VESTA_HD VESTA_INLINE T normal_cdf(T x) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 4) return ::normcdff(x);
  if constexpr (sizeof(T) == 8) return ::normcdf(x);
#else
  return T(0.5 * ::erfc(static_cast<double>(x) * -0.70710678118654752440));  // x / sqrt 2 in float costs the tail
#endif
}

/// Computes the slope of x normal_cdf(x), of gelu: normal_cdf(x) + x times the density.
template <Real T>
VESTA_HD VESTA_INLINE T normal_slope(T x) {
  const T density = T(0.3989422804014327) * exp(x * x * T(-0.5));  // 1 / sqrt(2 pi)
  return T(0.5) * erfc(x * T(-0.7071067811865476)) + x * density;
}

VESTA_HD VESTA_INLINE float abs(float x) { return ::fabsf(x); }
VESTA_HD VESTA_INLINE double abs(double x) { return ::fabs(x); }

template <Real T>
VESTA_HD VESTA_INLINE bool isnan(T x) {
  return x != x;
}
template <Real T>
VESTA_HD VESTA_INLINE bool isinf(T x) {
  return abs(x) == static_cast<T>(INFINITY);
}
template <Real T>
VESTA_HD VESTA_INLINE bool isfinite(T x) {
  return abs(x) < static_cast<T>(INFINITY);
}

/// Returns whether the sign is negative: that of -0 and of NaN too.
template <Real T>
VESTA_HD VESTA_INLINE bool signbit(T x) {
  return copysign(T(1), x) < T(0);
}

/// Returns -1, 0 or 1; 0 for NaN, as torch.sign does.
template <Real T>
VESTA_HD VESTA_INLINE T sign(T x) {
  return static_cast<T>(static_cast<int>(x > T(0)) - static_cast<int>(x < T(0)));
}

/// Returns the larger operand; NaN if either is NaN, as torch.maximum does. Equal operands give the first.
template <Real T>
VESTA_HD VESTA_INLINE T maximum(T a, T b) {
  return (a >= b || a != a) ? a : b;
}
/// Returns the smaller operand; NaN if either is NaN. Equal operands give the first.
template <Real T>
VESTA_HD VESTA_INLINE T minimum(T a, T b) {
  return (a <= b || a != a) ? a : b;
}

template <Real T>
VESTA_HD VESTA_INLINE T conj(T x) {
  return x;
}

/// Splits x = mantissa * 2^exponent with 1/2 <= |mantissa| < 1, exactly. 0, infinities and NaN are their own mantissas,
/// with exponent 0.
template <Real T>
VESTA_HD VESTA_INLINE T frexp(T x, T& exponent) {
  int power = 0;
  T mantissa;
  if constexpr (sizeof(T) == 4) mantissa = ::frexpf(x, &power);
  else mantissa = ::frexp(x, &power);
  exponent = static_cast<T>(isfinite(x) ? power : 0);
  return isfinite(x) ? mantissa : x;
}
template <class V>
  requires(!Scalar<V>)
VESTA_HD VESTA_INLINE V frexp(const V& x, V& exponent) {
  return adl_call::call_frexp(x, exponent);
}

// ---- integers and bool ----------------------------------------------------------------------------------------------
// Sums, products and absolute values wrap around, as NumPy's and PyTorch's do: they are formed in unsigned arithmetic.

/// The unsigned type in which arithmetic of T wraps around: at least as wide as `unsigned`.
template <Integer T>
using Unsigned = std::conditional_t<
    (sizeof(T) < sizeof(unsigned)), unsigned,
    typename std::conditional_t<std::is_same_v<T, bool>, std::type_identity<unsigned>, std::make_unsigned<T>>::type>;

template <Integer T>
VESTA_HD VESTA_INLINE T abs(T x) {
  return x < T(0) ? static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(x)) : x;
}
template <Integer T>
VESTA_HD VESTA_INLINE T sign(T x) {
  return static_cast<T>(static_cast<int>(x > T(0)) - static_cast<int>(x < T(0)));
}
template <Integer T>
VESTA_HD VESTA_INLINE T maximum(T a, T b) {
  return a < b ? b : a;
}
template <Integer T>
VESTA_HD VESTA_INLINE T minimum(T a, T b) {
  return b < a ? b : a;
}
template <Integer T>
VESTA_HD VESTA_INLINE T fmax(T a, T b) {
  return maximum(a, b);
}
template <Integer T>
VESTA_HD VESTA_INLINE T fmin(T a, T b) {
  return minimum(a, b);
}
template <Integer T>
VESTA_HD VESTA_INLINE T floor(T x) {
  return x;
}
template <Integer T>
VESTA_HD VESTA_INLINE T ceil(T x) {
  return x;
}
template <Integer T>
VESTA_HD VESTA_INLINE T trunc(T x) {
  return x;
}
template <Integer T>
VESTA_HD VESTA_INLINE T round(T x) {
  return x;
}
template <Integer T>
VESTA_HD VESTA_INLINE T conj(T x) {
  return x;
}
template <Integer T>
VESTA_HD VESTA_INLINE bool isnan(T) {
  return false;
}
template <Integer T>
VESTA_HD VESTA_INLINE bool isinf(T) {
  return false;
}
template <Integer T>
VESTA_HD VESTA_INLINE bool isfinite(T) {
  return true;
}

/// Divides integers, rounding towards zero. Never traps: b == 0 gives 0, the smallest number over -1 wraps to itself.
/// An op raises on a zero divisor before its kernel runs; the value only ensures that no signal is raised.
template <Integer T>
VESTA_HD VESTA_INLINE T trunc_divide(T a, T b) {
  if (b == T(0)) return T(0);
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return static_cast<T>(Unsigned<T>(0) - static_cast<Unsigned<T>>(a));
  }
  return static_cast<T>(a / b);
}
/// Returns the C remainder (its sign is the dividend's); 0 for b == 0 and b == -1. See trunc_divide.
template <Integer T>
VESTA_HD VESTA_INLINE T fmod(T a, T b) {
  if (b == T(0)) return T(0);
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return T(0);
  }
  return static_cast<T>(a % b);
}
/// Divides integers, rounding down, as Python's //. Zero divisors as in trunc_divide.
template <Integer T>
VESTA_HD VESTA_INLINE T floor_divide(T a, T b) {
  const T quotient = trunc_divide(a, b);
  const T rest = fmod(a, b);
  return rest != T(0) && ((rest < T(0)) != (b < T(0))) ? static_cast<T>(quotient - 1) : quotient;
}
/// Returns Python's %: the sign is the divisor's. Zero divisors as in fmod.
template <Integer T>
VESTA_HD VESTA_INLINE T remainder(T a, T b) {
  const T rest = fmod(a, b);
  return rest != T(0) && ((rest < T(0)) != (b < T(0))) ? static_cast<T>(rest + b) : rest;
}
/// Raises to an integer power, wrapping. A negative exponent gives the truncated real result: 0 unless base is 1 or -1
/// (0 to a negative power gives 0).
template <Integer T>
VESTA_HD VESTA_INLINE T pow(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < T(0)) {
      if (base == T(1)) return T(1);
      if (base == T(-1)) return (exponent & T(1)) != T(0) ? T(-1) : T(1);
      return T(0);
    }
  }
  auto square = static_cast<Unsigned<T>>(base);  // NOLINT(bugprone-signed-char-misuse): it wraps
  auto left = static_cast<Unsigned<T>>(exponent);  // NOLINT(bugprone-signed-char-misuse)
  Unsigned<T> result = 1;
  for (; left != 0; left >>= 1) {
    if ((left & 1u) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

/// Returns whether an integer is negative.
template <Integer T>
VESTA_HD VESTA_INLINE bool signbit(T x) {
  if constexpr (std::is_signed_v<T>) return x < T(0);
  else return false;
}
/// Shifts to the left, wrapping; a shift by a negative number or by all bits gives 0.
template <Integer T>
VESTA_HD VESTA_INLINE T left_shift(T a, T b) {
  constexpr int bits = 8 * int(sizeof(T));
  if (signbit(b) || b >= T(bits)) return T(0);
  return static_cast<T>(static_cast<Unsigned<T>>(a) << static_cast<int>(b));
}
/// Shifts to the right, keeping the sign; a shift by a negative number or by all bits leaves the sign alone.
template <Integer T>
VESTA_HD VESTA_INLINE T right_shift(T a, T b) {
  constexpr int bits = 8 * int(sizeof(T));
  if (signbit(b) || b >= T(bits)) return signbit(a) ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> static_cast<int>(b));
}
#ifndef __CUDACC__
// Bytes are shifted by 4, 2 and 1 as the bits of b say: no instruction set has shifts of them by different counts, and
// as 32-bit numbers they took twice as long. A negative count is 128 or more.
template <Integer T>
  requires(sizeof(T) == 1)
VESTA_INLINE T left_shift(T a, T b) {
  const auto count = static_cast<std::uint8_t>(b);
  auto bits = static_cast<std::uint8_t>(a);
  bits = (count & 4) != 0 ? static_cast<std::uint8_t>(bits << 4) : bits;
  bits = (count & 2) != 0 ? static_cast<std::uint8_t>(bits << 2) : bits;
  bits = (count & 1) != 0 ? static_cast<std::uint8_t>(bits << 1) : bits;
  return static_cast<T>(count > 7 ? std::uint8_t(0) : bits);
}
template <Integer T>
  requires(sizeof(T) == 1)
VESTA_INLINE T right_shift(T a, T b) {
  const auto count = static_cast<std::uint8_t>(b), sign = static_cast<std::uint8_t>(signbit(a) ? 0xff : 0);
  auto bits = static_cast<std::uint8_t>(static_cast<std::uint8_t>(a) ^ sign);  // ~a if a < 0, and ~ of its shift after
  bits = (count & 4) != 0 ? static_cast<std::uint8_t>(bits >> 4) : bits;
  bits = (count & 2) != 0 ? static_cast<std::uint8_t>(bits >> 2) : bits;
  bits = (count & 1) != 0 ? static_cast<std::uint8_t>(bits >> 1) : bits;
  return static_cast<T>((count > 7 ? std::uint8_t(0) : bits) ^ sign);
}
#endif
/// Returns the greatest common divisor (Euclid), 0 for zeros.
template <Integer T>
VESTA_HD VESTA_INLINE T gcd(T a, T b) {
  while (b != T(0)) {
    const T rest = fmod(a, b);
    a = b;
    b = rest;
  }
  return abs(a);
}
/// Returns the least common multiple, wrapping; 0 if either is 0.
template <Integer T>
VESTA_HD VESTA_INLINE T lcm(T a, T b) {
  const T divisor = gcd(a, b);
  if (divisor == T(0)) return T(0);
  return abs(static_cast<T>(static_cast<Unsigned<T>>(trunc_divide(a, divisor)) * static_cast<Unsigned<T>>(b)));
}

/// Returns the sign of a real number: sgn is sign there, and differs for complex numbers only.
template <class T>
  requires(Real<T> || Integer<T>)
VESTA_HD VESTA_INLINE T sgn(T x) {
  return sign(x);
}

// ---- formulas that hold for float, double and their vectors ---------------------------------------------------------

/// Returns Python's % on reals: fmod moved to the divisor's sign.
template <class V>
  requires(Real<V> || !Scalar<V>)
VESTA_HD VESTA_INLINE V remainder(V a, V b) {
  const V rest = fmod(a, b);
  const V zero = lit<V>(0);
  return select((rest != zero) & ((rest < zero) ^ (b < zero)), rest + b, rest);
}

/// Returns Python's // on reals: floor of the exact quotient, NaN and infinities as a / b gives them for b == 0.
/// Formula: (a - fmod(a, b)) / b, stepped down where the signs differ, then moved to the nearest integer (CPython).
template <class V>
  requires(Real<V> || !Scalar<V>)
VESTA_HD VESTA_INLINE V floor_divide(V a, V b) {
  const V zero = lit<V>(0);
  const V one = lit<V>(1);
  const V rest = fmod(a, b);
  V quotient = (a - rest) / b;
  quotient = select((rest != zero) & ((b < zero) ^ (rest < zero)), quotient - one, quotient);
  const V below = floor(quotient);
  const V nearest = select(quotient - below > lit<V>(0.5), below + one, below);
  const V result = select(quotient == zero, math::copysign(zero, V(a / b)), nearest);
  return select(b == zero, a / b, result);
}

/// Divides, rounding towards zero.
template <class V>
  requires(Real<V> || !Scalar<V>)
VESTA_HD VESTA_INLINE V trunc_divide(V a, V b) {
  return trunc(a / b);
}

/// Limits x to [low, high]; NaN stays NaN; low > high gives high, as torch.clamp does.
template <class V>
  requires(!Complex<V>)
VESTA_HD VESTA_INLINE V clamp(V x, V low, V high) {
  return minimum(maximum(x, low), high);
}

/// Returns the angle of a real number: pi if it is negative, 0 if not (-0 too), NaN for NaN, as torch.angle does.
template <class V>
  requires(Real<V> || !Scalar<V>)
VESTA_HD VESTA_INLINE V angle(V x) {
  const V zero = lit<V>(0);
  return select(x < zero, lit<V>(3.14159265358979323846), select(isnan(x), x, zero));
}

/// Multiplies. A complex product is the plain formula, as NumPy's and PyTorch's is: std::complex's operator replaces
/// NaN by infinities (C99 Annex G), and no other library does.
template <class V>
  requires(!Complex<V>)
VESTA_HD VESTA_INLINE V product(V a, V b) {
  return V(a * b);
}
/// Divides. A complex quotient is Smith's, as NumPy's is.
template <class V>
  requires(!Complex<V>)
VESTA_HD VESTA_INLINE V quotient(V a, V b) {
  return a / b;
}
/// Multiplies by a real number; a complex x part by part: (2 + 0i)(inf + 2i) has a NaN, and 2 (inf + 2i) has none.
template <class V>
  requires(!Complex<V>)
VESTA_HD VESTA_INLINE V scaled(V x, double factor) {
  if constexpr (requires { V{x.re, x.im}; }) {
    using R = typename V::value_type;
    return V{x.re * R(factor), x.im * R(factor)};
  } else {
    return V(x * lit<V>(factor));
  }
}

// ---- complex --------------------------------------------------------------------------------------------------------
// Host only. Functions are the C library's (C99 Annex G at infinities and NaN); products and quotients are written out,
// not std::complex's operators. Both agree with NumPy.

#ifndef __CUDACC__

/// Returns the C library's form of a complex number.
VESTA_INLINE __complex__ float c_value(std::complex<float> z) {
  __complex__ float c;
  __real__ c = z.real();
  __imag__ c = z.imag();
  return c;
}
VESTA_INLINE __complex__ double c_value(std::complex<double> z) {
  __complex__ double c;
  __real__ c = z.real();
  __imag__ c = z.imag();
  return c;
}

#define VESTA_MATH_COMPLEX(name)                                                                             \
  VESTA_INLINE std::complex<float> name(std::complex<float> z) {                                             \
    return std::complex<float>(__builtin_c##name##f(c_value(z)));                                            \
  }                                                                                                          \
  VESTA_INLINE std::complex<double> name(std::complex<double> z) {                                           \
    return std::complex<double>(__builtin_c##name(c_value(z)));                                              \
  }
VESTA_MATH_COMPLEX(exp)
VESTA_MATH_COMPLEX(log)
VESTA_MATH_COMPLEX(sqrt)
VESTA_MATH_COMPLEX(sin)
VESTA_MATH_COMPLEX(cos)
VESTA_MATH_COMPLEX(tan)
VESTA_MATH_COMPLEX(asin)
VESTA_MATH_COMPLEX(acos)
VESTA_MATH_COMPLEX(atan)
VESTA_MATH_COMPLEX(sinh)
VESTA_MATH_COMPLEX(cosh)
VESTA_MATH_COMPLEX(tanh)
VESTA_MATH_COMPLEX(asinh)
VESTA_MATH_COMPLEX(acosh)
VESTA_MATH_COMPLEX(atanh)
#undef VESTA_MATH_COMPLEX

// These are templates over `const std::complex<T>&` with a constraint, so that they win over the functions of namespace
// std that argument-dependent lookup brings along.

template <Real T>
VESTA_INLINE std::complex<T> product(const std::complex<T>& a, const std::complex<T>& b) {
  // A sum of negated numbers has the bits of the difference; GCC 12 makes fused instructions of a difference beside a
  // sum although contraction is off.
  return {a.real() * b.real() + -a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// Divides without overflow on the way (Smith, "Algorithm 116: Complex division", CACM 1962).
template <Real T>
VESTA_INLINE std::complex<T> quotient(const std::complex<T>& a, const std::complex<T>& b) {
  const T re = b.real(), im = b.imag();
  if (abs(re) >= abs(im)) {
    if (re == T(0) && im == T(0)) return {a.real() / abs(re), a.imag() / abs(im)};
    const T ratio = im / re, scale = T(1) / (re + im * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() + -a.real() * ratio) * scale};
  }
  const T ratio = re / im, scale = T(1) / (re * ratio + im);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio + -a.real()) * scale};
}
template <Real T>
VESTA_INLINE std::complex<T> scaled(const std::complex<T>& z, double factor) {
  return {z.real() * T(factor), z.imag() * T(factor)};
}
template <Real T>
VESTA_INLINE std::complex<T> conj(const std::complex<T>& z) {
  return {z.real(), -z.imag()};
}
/// Returns |z| as a real number, without overflow or underflow on the way.
template <Real T>
VESTA_INLINE T abs(const std::complex<T>& z) {
  return hypot(z.real(), z.imag());
}
/// Returns arg z in (-pi, pi].
template <Real T>
VESTA_INLINE T angle(const std::complex<T>& z) {
  return atan2(z.imag(), z.real());
}
template <Real T>
VESTA_INLINE bool isnan(const std::complex<T>& z) {
  return isnan(z.real()) || isnan(z.imag());
}
template <Real T>
VESTA_INLINE bool isinf(const std::complex<T>& z) {
  return isinf(z.real()) || isinf(z.imag());
}
template <Real T>
VESTA_INLINE bool isfinite(const std::complex<T>& z) {
  return isfinite(z.real()) && isfinite(z.imag());
}

/// Returns z / |z|, 0 for 0, as torch.sgn does.
template <Real T>
VESTA_INLINE std::complex<T> sgn(const std::complex<T>& z) {
  const T size = abs(z);
  if (size == T(0)) return {T(0), T(0)};
  return {z.real() / size, z.imag() / size};
}
template <Real T>
VESTA_INLINE std::complex<T> rsqrt(const std::complex<T>& z) {
  return quotient(std::complex<T>(T(1), T(0)), sqrt(z));
}
template <Real T>
VESTA_INLINE std::complex<T> sigmoid(const std::complex<T>& z) {
  return quotient(std::complex<T>(T(1), T(0)), T(1) + exp(-z));
}

/// Computes log(1 + z), its real part as log1p(x (2 + x) + y^2) / 2 where 1 + z would cancel.
template <Real T>
VESTA_INLINE std::complex<T> log1p(const std::complex<T>& z) {
  const T x = z.real(), y = z.imag();
  if (!(abs(x) <= T(0.5) && abs(y) <= T(0.5))) return log(std::complex<T>(x + T(1), y));
  return {log1p(x * (T(2) + x) + y * y) / T(2), atan2(y, x + T(1))};
}
/// Computes e^z - 1 as expm1(x) cos y - 2 sin^2(y/2) + i e^x sin y, which does not cancel near 0.
template <Real T>
VESTA_INLINE std::complex<T> expm1(const std::complex<T>& z) {
  const T x = z.real(), y = z.imag();
  const T half_sine = sin(y / T(2));
  return {expm1(x) * cos(y) - T(2) * half_sine * half_sine, exp(x) * sin(y)};
}
template <Real T>
VESTA_INLINE std::complex<T> exp2(const std::complex<T>& z) {
  return exp(std::complex<T>(z.real() * T(0.693147180559945309417), z.imag() * T(0.693147180559945309417)));
}
template <Real T>
VESTA_INLINE std::complex<T> log2(const std::complex<T>& z) {
  const std::complex<T> natural = log(z);
  return {natural.real() * T(1.44269504088896340736), natural.imag() * T(1.44269504088896340736)};
}
template <Real T>
VESTA_INLINE std::complex<T> log10(const std::complex<T>& z) {
  const std::complex<T> natural = log(z);
  return {natural.real() * T(0.434294481903251827651), natural.imag() * T(0.434294481903251827651)};
}

VESTA_INLINE std::complex<float> cpow(std::complex<float> a, std::complex<float> b) {
  return std::complex<float>(__builtin_cpowf(c_value(a), c_value(b)));
}
VESTA_INLINE std::complex<double> cpow(std::complex<double> a, std::complex<double> b) {
  return std::complex<double>(__builtin_cpow(c_value(a), c_value(b)));
}

/// Raises a complex base. z^0 is 1; 0^w is 0 for a w with positive real part and NaN for any other. Whole powers up to
/// 100 are products, z^(1/2) is the root, the rest is the C library's cpow, as in NumPy.
template <Real T>
VESTA_INLINE std::complex<T> pow(const std::complex<T>& base, const std::complex<T>& exponent) {
  const T re = exponent.real();
  if (re == T(0) && exponent.imag() == T(0)) return {T(1), T(0)};
  if (base.real() == T(0) && base.imag() == T(0)) {
    const T value = re > T(0) ? T(0) : static_cast<T>(NAN);
    return {value, value};
  }
  if (re == T(0.5) && exponent.imag() == T(0)) return sqrt(base);
  if (exponent.imag() != T(0) || !(abs(re) <= T(100)) || trunc(re) != re) return cpow(base, exponent);
  std::complex<T> square = base, result(T(1), T(0));
  bool first = true;  // the first factor is taken over, not multiplied: 1 * (inf + i y) would make a NaN
  for (int left = static_cast<int>(abs(re)); left != 0; left >>= 1) {
    if ((left & 1) != 0) {
      result = first ? square : product(result, square);
      first = false;
    }
    if (left > 1) square = product(square, square);
  }
  return re < T(0) ? quotient(std::complex<T>(T(1), T(0)), result) : result;
}

#endif  // __CUDACC__

}  // namespace VESTA_ISA_NS
}  // namespace vesta::math
