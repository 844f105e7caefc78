// Special functions, for every carrier that core/ops/math.h names but Tensor: float and double on a device, vectors on
// the host. Formulas of one piece (polynomials, recurrences) are written for vectors; those with loops whose length
// depends on the value are written for double and run lane by lane.
#pragma once
#include <vesta/core/ops/math.h>

/// Declares a function that is compiled once, not into each kernel: a call is nothing beside its series.
#define VESTA_OUT_OF_LINE VESTA_HD __attribute__((noinline)) inline

namespace vesta::math {

// A Tensor's functions are the ops of the same names: Note [Finding a carrier's own functions] in math.h.
namespace adl_call {
#define VESTA_MATH_SPECIAL(X) X(digamma) X(i0) X(i0e) X(i1) X(i1e)
#define VESTA_MATH_POISON(name) void name() = delete;
VESTA_MATH_SPECIAL(VESTA_MATH_POISON)
void polygamma() = delete;
#undef VESTA_MATH_POISON
inline namespace VESTA_ISA_NS {
#define VESTA_MATH_CALL1(name)                       \
  template <class V>                                 \
  VESTA_HD VESTA_INLINE auto call_##name(const V& x) { \
    return name(x);                                  \
  }
VESTA_MATH_SPECIAL(VESTA_MATH_CALL1)
#undef VESTA_MATH_CALL1
template <class V>
VESTA_HD VESTA_INLINE auto call_polygamma(int64_t n, const V& x) {
  return polygamma(n, x);
}
}  // namespace VESTA_ISA_NS
}  // namespace adl_call

inline namespace VESTA_ISA_NS {

/// Scalars and vectors, which this file computes itself.
template <class V>
concept Numeric = Scalar<V> || requires { V::N; };

#define VESTA_MATH_FORWARD1(name)                  \
  template <class V>                               \
    requires(!Numeric<V>)                          \
  VESTA_HD VESTA_INLINE auto name(const V& x) {    \
    return adl_call::call_##name(x);               \
  }
VESTA_MATH_SPECIAL(VESTA_MATH_FORWARD1)
#undef VESTA_MATH_FORWARD1
#undef VESTA_MATH_SPECIAL
template <class V>
  requires(!Numeric<V>)
VESTA_HD VESTA_INLINE auto polygamma(int64_t n, const V& x) {
  return adl_call::call_polygamma(n, x);
}

/// Evaluates c0 + z c1 + z^2 c2 + ... by Horner's rule.
template <class V>
VESTA_HD VESTA_INLINE V polynomial(V, double c) {
  return lit<V>(c);
}
template <class V, class... Rest>
VESTA_HD VESTA_INLINE V polynomial(V z, double c, Rest... rest) {
  return lit<V>(c) + z * polynomial(z, rest...);
}

/// The type of V's elements: V itself for a number.
template <class V>
struct ElementOf {
  using type = V;
};
template <class V>
  requires(!Scalar<V>)
struct ElementOf<V> {
  using type = typename V::value_type;
};
template <class V>
inline constexpr bool is_single = sizeof(typename ElementOf<V>::type) == 4;

/// Applies a function of doubles to each lane of x.
template <class F, class V>
VESTA_HD VESTA_INLINE V lane_by_lane(F f, V x) {
  if constexpr (Scalar<V>) {
    return V(f(double(x)));
  } else {
    for (int i = 0; i < V::N; ++i) x.raw[i] = typename V::value_type(f(double(x[i])));
    return x;
  }
}

// ---- sines of multiples of pi ---------------------------------------------------------------------------------------

/// Computes sin(pi x), exact at integers: x is reduced to [-1/2, 1/2] first, which loses nothing.
template <class V>
VESTA_HD VESTA_INLINE V sin_pi(V x) {
  const V n = round(x), half = n * lit<V>(0.5);
  const V sine = sin(lit<V>(3.14159265358979323846) * (x - n));
  return select(floor(half) == half, sine, -sine);
}

// ---- the normal distribution ----------------------------------------------------------------------------------------

/// Computes the standard normal quantile at 1/2 + q, where tail = 1/2 - |q|; both are given, so that neither is
/// rounded. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", 1988: relative error about
/// 1e-16.
template <class V>
VESTA_HD VESTA_INLINE V normal_quantile(V q, V tail) {
  const V r = lit<V>(0.180625) - q * q;
  const V central =
      q *
      polynomial(r, 3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
                 45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727) /
      polynomial(r, 1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077, 21213.794301586595867,
                 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610);
  const V s = sqrt(-log(tail)), near = s - lit<V>(1.6), far = s - lit<V>(5);
  const V inner =
      polynomial(near, 1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
                 1.27045825245236838258, 0.241780725177450611770, 0.0227238449892691845833, 7.74545014278341407640e-4) /
      polynomial(near, 1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
                 0.148103976427480074590, 0.0151986665636164571966, 5.47593808499534494600e-4,
                 1.05075007164441684324e-9);
  const V outer = polynomial(far, 6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
                             0.296560571828504891230, 0.0265321895265761230930, 1.24266094738807843860e-3,
                             2.71155556874348757815e-5, 2.01033439929228813265e-7) /
                  polynomial(far, 1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
                             7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                             2.04426310338993978564e-15);
  V size = select(s <= lit<V>(5), inner, outer);
  size = select(tail == lit<V>(0), lit<V>(INFINITY), size);
  return select(abs(q) <= lit<V>(0.425), central, math::copysign(size, q));
}

/// Computes the inverse of the error function; NaN outside of [-1, 1].
template <class V>
VESTA_HD VESTA_INLINE V erfinv(V x) {
  const V half = lit<V>(0.5);
  return normal_quantile(V(x * half), V((lit<V>(1) - abs(x)) * half)) * lit<V>(0.70710678118654752440);
}

/// Computes the quantile of the standard normal distribution; NaN outside of [0, 1].
template <class V>
VESTA_HD VESTA_INLINE V normal_quantile(V p) {
  const V upper = lit<V>(1) - p;
  return normal_quantile(V(p - lit<V>(0.5)), V(select(p < upper, p, upper)));
}

// ---- digamma and polygamma ------------------------------------------------------------------------------------------

/// Computes the logarithmic derivative of the gamma function. Below 0 by reflection, psi(x) = psi(1 - x) - pi / tan(pi
/// x); then psi(x) = psi(x + 10) - 1/x - ... - 1/(x + 9) for x < 10, and the asymptotic series (Abramowitz and Stegun,
/// 6.3.5, 6.3.7 and 6.3.18). An infinity of the other sign of zero at 0, NaN at negative integers.
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V digamma(V x) {
  const V zero = lit<V>(0), one = lit<V>(1);
  const auto negative = x < zero;
  const V z = select(negative, one - x, x);
  V sum = zero;
  for (int k = 0; k < 10; ++k) sum = sum + one / (z + lit<V>(k));
  const auto small = z < lit<V>(10);
  const V large = select(small, z + lit<V>(10), z);
  const V inverse = one / large, square = inverse * inverse;
  const V series =
      square * polynomial(square, 1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12);
  V y = log(large) - lit<V>(0.5) * inverse - series;
  y = select(small, y - sum, y);
  const V nearest = round(x), part = x - nearest;
  const V angle = lit<V>(3.14159265358979323846) * part;
  y = select(negative, y - lit<V>(3.14159265358979323846) / tan(angle), y);
  y = select(negative & (part == zero), lit<V>(NAN), y);
  return select(x == zero, math::copysign(lit<V>(INFINITY), V(-x)), y);
}

/// Computes the Hurwitz zeta function, the sum of (q + k)^-s over k = 0, 1, ..., for s > 1 and q > 0, or its derivative
/// by s: ten terms and the Euler-Maclaurin formula for the rest.
VESTA_OUT_OF_LINE double hurwitz_zeta_above(double s, double q, bool slope = false) {
  double sum = 0;
  for (int k = 0; k < 10; ++k) {
    const double power = pow(q + double(k), -s);
    sum += slope ? -log(q + double(k)) * power : power;
  }
  const double a = q + 10, power = pow(a, -s), rate = slope ? -log(a) : 0, last = a / (s - 1);
  sum += power * (slope ? last * (rate - 1 / (s - 1)) + 0.5 * rate : last + 0.5);
  // the numbers (2 j)! / B_2j
  const double divisors[] = {12.0,
                             -720.0,
                             30240.0,
                             -1209600.0,
                             47900160.0,
                             -1307674368000.0 / 691,
                             74724249600.0,
                             -10670622842880000.0 / 3617,
                             5109094217170944000.0 / 43867,
                             -802857662698291200000.0 / 174611};
  double factor = s, term = power / a, harmonic = 1 / s;
  for (int j = 0; j < 10 && term > 0; ++j) {
    sum += factor * term / divisors[j] * (slope ? rate + harmonic : 1);
    const double next = s + 2 * j + 1;
    factor *= next * (next + 1);
    harmonic += 1 / next + 1 / (next + 1);
    term /= a * a;
  }
  return sum;
}
/// Computes the same for every q and, where q < 0, for an integer s: infinite at 0, -1, ...; for other q < 0 from the
/// sum over all integers, which has period 1.
VESTA_OUT_OF_LINE double hurwitz_zeta(double s, double q) {
  if (!(q <= 0)) return q == static_cast<double>(INFINITY) ? 0 : hurwitz_zeta_above(s, q);
  const bool even = floor(s * 0.5) * 2 == s;
  const double r = q - round(q), sign = even ? 1 : -1;
  if (!(r == r)) return r;
  if (r == 0) return even || q == 0 ? static_cast<double>(INFINITY) : static_cast<double>(NAN);
  const double all = (even    ? 1
                      : r < 0 ? -1
                              : 1) *
                         pow(abs(r), -s) +
                     hurwitz_zeta_above(s, 1 + r) + sign * hurwitz_zeta_above(s, 1 - r);
  return all - sign * hurwitz_zeta_above(s, 1 - q);
}
/// Computes the derivative of digamma. Below 0 by reflection, psi'(x) = pi^2 / sin(pi x)^2 - psi'(1 - x); then psi'(x)
/// = psi'(x + n) + 1/x^2 + ... + 1/(x + n - 1)^2 for x < n, and the asymptotic series (Abramowitz and
/// Stegun, 6.4.6, 6.4.7 and 6.4.12). Infinite at 0, -1, ...
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V trigamma(V x) {
  constexpr int n = is_single<V> ? 6 : 10;
  const V zero = lit<V>(0), one = lit<V>(1);
  const auto negative = x < zero;
  const V z = select(negative, one - x, x);
  V sum = zero;
  for (int k = n - 1; k >= 0; --k) {
    const V inverse = one / (z + lit<V>(k));
    sum = sum + inverse * inverse;
  }
  const auto small = z < lit<V>(n);
  const V inverse = one / select(small, z + lit<V>(n), z), square = inverse * inverse;
  V series;
  if constexpr (is_single<V>) {
    series = polynomial(square, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30);
  } else {
    series =
        polynomial(square, 1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510);
  }
  V y = inverse + square * (lit<V>(0.5) + inverse * series);
  y = select(small, y + sum, y);
  const V ratio = lit<V>(3.14159265358979323846) / sin_pi(x);
  return select(negative, ratio * ratio - y, y);
}
/// Computes the n-th derivative of digamma, (-1)^(n + 1) n! zeta(n + 1, x), for an integer n > 0 (Abramowitz and
/// Stegun, 6.4.10).
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V polygamma(int64_t order, V x) {
  if (order == 1) return trigamma(x);
  const int n = int(order);
  double factorial = n % 2 == 0 ? -1 : 1;
  for (int k = 2; k <= n && k <= 171; ++k) factorial *= k;
  return lane_by_lane([n, factorial](double v) { return factorial * hurwitz_zeta(n + 1, v); }, x);
}

// ---- modified Bessel functions --------------------------------------------------------------------------------------

/// Sums a series of Chebyshev polynomials at t in [-1, 1] (Clenshaw).
template <int terms, class V, int count>
VESTA_HD VESTA_INLINE V chebyshev(V t, const double (&c)[count]) {
  const V twice = t + t;
  V b = lit<V>(0), before = lit<V>(0);
  for (int k = terms - 1; k > 0; --k) {
    const V next = twice * b - before + lit<V>(c[k]);
    before = b;
    b = next;
  }
  return t * b - before + lit<V>(c[0]);
}

/// Computes e^-|x| I0(x). The series for |x| <= 8 (in |x| / 4 - 1) and beyond (of sqrt|x| e^-|x| I0 in 16 / |x| - 1)
/// were computed for this file, to 2^-56 of the value; floats take 2^-27.
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V i0e(V x) {
  const double below[] = {
      0.338397637204738042,     -0.304682672343198399,    0.171620901522208775,    -0.0949010970480476444,
      0.0493052842396707085,    -0.0237374148058994688,   0.0105464603945949983,   -0.00432430999505057594,
      0.0016394756169413358,    -0.000576375574538582366, 0.000188502885095841656, -0.000057541950100821037,
      0.0000164484480707288971, -4.41673835845875056e-6,  1.11738753912010372e-6,  -2.67079385394061173e-7,
      6.04699502254191895e-8,   -1.30002500998624804e-8,  2.65982372468238665e-9,  -5.18979560163526291e-10,
      9.67580903537323691e-11,  -1.72682629144155571e-11, 2.95505266312963983e-12, -4.85644678311192946e-13,
      7.67618549860493562e-14,  -1.16853328779934517e-14, 1.71539128555513303e-15, -2.43127984654795469e-16,
      3.3307945188222381e-17,   -4.41534164647933938e-18};
  const double above[] = {
      0.402245205507054416,     0.00336911647825569409,   0.0000688975834691682398, 2.89137052083475648e-6,
      2.04891858946906374e-7,   2.26666899049817806e-8,   3.39623202570838635e-9,   4.94060238822496959e-10,
      1.18891471078464383e-11,  -3.14991652796324136e-11, -1.32158118404477131e-11, -1.79417853150680612e-12,
      7.18012445138366623e-13,  3.8527783827421427e-13,   1.54008621752140983e-14,  -4.15056934728722209e-14,
      -9.55484669882830765e-15, 3.81168066935262242e-15,  1.77256013305652638e-15,  -3.42548561967721914e-16,
      -2.82762398051658348e-16, 3.461222867697461e-17,    4.46562142029675996e-17,  -4.83050448594417829e-18,
      -7.23318048787475975e-18};
  const V size = abs(x), eight = lit<V>(8);
  const V low = select(size <= eight, size, eight), high = select(size > eight, size, eight);
  const V near = chebyshev<is_single<V> ? 19 : 30>(V(low * lit<V>(0.25) - lit<V>(1)), below);
  const V far = chebyshev<is_single<V> ? 7 : 25>(V(lit<V>(16) / high - lit<V>(1)), above) / sqrt(high);
  return select(size != size, size, select(size <= eight, near, far));
}
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V i0(V x) {
  const V root = exp(abs(x) * lit<V>(0.5));  // e^|x| overflows before I0 does
  return select(isinf(x), abs(x), root * i0e(x) * root);
}

/// Computes e^-|x| I1(x), by series as those of i0e, of e^-|x| I1(x) / x for |x| <= 8.
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V i1e(V x) {
  const double below[] = {
      0.126293593221816827,    -0.176416518357834055,    0.102643658689847095,     -0.0529459812080949914,
      0.0247264490306265168,   -0.0105640848946261982,   0.00415642294431288816,   -0.00151357245063125315,
      0.000512285956168575773, -0.000161760815825896746, 0.0000478156510755005423, -0.0000132731636560394358,
      3.47025130813767848e-6,  -8.56872026469545474e-7,  2.00329475355213526e-7,   -4.44505912879632808e-8,
      9.38153738649577178e-9,  -1.88724975172282929e-9,  3.62559028155211704e-10,  -6.66348972350202774e-11,
      1.17361862988909016e-11, -1.98397439776494372e-12, 3.22379336594557471e-13,  -5.04218550472791169e-14,
      7.60068429473540693e-15, -1.10559694773538631e-15, 1.55363195773620047e-16,  -2.11142121435816608e-17,
      2.77791411276104637e-18, -3.54158177254213621e-19};
  const double above[] = {
      0.38928811750914006,      -0.00976109749136146841,  -0.000110588938762623716, -3.88256480887769039e-6,
      -2.51223623787020893e-7,  -2.63146884688951951e-8,  -3.83538038596423702e-9,  -5.58974346219658381e-10,
      -1.89749581235054123e-11, 3.25260358301548824e-11,  1.41258074366137813e-11,  2.03562854414708951e-12,
      -7.19855177624590851e-13, -4.08355111109219732e-13, -2.10154184277266431e-14, 4.27244001671195135e-14,
      1.04202769841288028e-14,  -3.8144030724370078e-15,  -1.88035477551078245e-15, 3.30820231092092828e-16,
      2.96262899764595013e-16,  -3.20952592199342386e-17, -4.65030536848935829e-17, 4.41434832307170414e-18,
      7.51729631084211076e-18};
  const V size = abs(x), eight = lit<V>(8);
  const V low = select(size <= eight, size, eight), high = select(size > eight, size, eight);
  const V near = size * chebyshev<is_single<V> ? 19 : 30>(V(low * lit<V>(0.25) - lit<V>(1)), below);
  const V far = chebyshev<is_single<V> ? 7 : 25>(V(lit<V>(16) / high - lit<V>(1)), above) / sqrt(high);
  return select(size != size, size, math::copysign(V(select(size <= eight, near, far)), x));
}
template <class V>
  requires Numeric<V>
VESTA_HD VESTA_INLINE V i1(V x) {
  const V root = exp(abs(x) * lit<V>(0.5));
  return select(isinf(x), x, root * i1e(x) * root);
}

}  // namespace VESTA_ISA_NS
}  // namespace vesta::math
