// The functions of Vec<float> and Vec<double> against the C library one precision up: errors in units in the last
// place, special values, signs of zero. Compiled once per instruction set (see simd_requirement.cpp).
#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/simd_blocks.h>
#include <vesta/core/ops/math.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

namespace simd = vesta::cpu::VESTA_ISA_NS;
using simd::Vec;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
template <class T>
using Bits = std::conditional_t<std::is_same_v<T, float>, std::uint32_t, std::uint64_t>;

template <class T>
T from_bits(Bits<T> bits) {
  return __builtin_bit_cast(T, bits);
}

// Returns the distance of `got` from the exact `expected`, in units in the last place of T at `expected`: 0 if both
// are the same NaN, infinity or zero, infinity if they differ in kind.
template <class T>
double ulp_error(T got, Wide<T> expected) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  using Limits = std::numeric_limits<T>;
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got) ? 0 : kWrong;
  const Wide<T> size = std::fabs(expected);
  if (expected == 0) return got == 0 && std::signbit(got) == std::signbit(expected) ? 0 : kWrong;
  if (std::isinf(got) || std::isinf(expected)) {
    if (std::signbit(got) != std::signbit(expected)) return kWrong;
    // One unit in the last place above the largest number counts as infinity; so does the largest number where
    // infinity is expected.
    const Wide<T> top = Limits::max();
    const Wide<T> unit = std::ldexp(Wide<T>(1), Limits::max_exponent - Limits::digits);
    if (std::isinf(got)) return size >= top ? 0 : static_cast<double>((top + unit - size) / unit);
    return std::isinf(expected) ? kWrong : static_cast<double>(std::fabs(got - expected) / unit);
  }
  int exponent = 0;
  std::frexp(size, &exponent);
  exponent = std::max(exponent, Limits::min_exponent);
  const Wide<T> unit = std::ldexp(Wide<T>(1), exponent - Limits::digits);
  return static_cast<double>(std::fabs(static_cast<Wide<T>>(got) - expected) / unit);
}

template <class T>
struct Worst {
  double error = 0;
  T at = 0, and_at = 0, got = 0;
};

// Values where functions often fail, with their neighbours, of both signs.
template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),          Limits::infinity(),   Limits::quiet_NaN(), Limits::max(),
                           Limits::min(), Limits::denorm_min(), Limits::min() / 2,   Limits::epsilon()};
  for (double centre : {1e-30,
                        1e-10,
                        1e-4,
                        1e-3,
                        0.1,
                        0.25,
                        0.34657359,
                        0.5,
                        0.57735027,
                        0.6931471805599453,
                        0.70710678118654752,
                        0.75,
                        0.92,
                        1.0,
                        1.1,
                        1.25,
                        1.4142135623730951,
                        1.5,
                        1.5707963267948966,
                        2.0,
                        2.5,
                        2.7182818284590452,
                        3.0,
                        3.1415926535897932,
                        4.0,
                        4.7123889803846899,
                        5.9,
                        6.2831853071795865,
                        8.0,
                        9.0,
                        10.0,
                        10.05,
                        10.2,
                        14.0,
                        14.5,
                        16.5,
                        17.3,
                        20.0,
                        22.0,
                        26.5,
                        31.415926535897932,
                        87.3,
                        88.0,
                        88.7,
                        88.72283905206835,
                        89.0,
                        89.4,
                        100.0,
                        103.9,
                        104.0,
                        127.0,
                        128.0,
                        149.0,
                        150.0,
                        170.6,
                        708.4,
                        709.78271289338397,
                        710.4,
                        745.1,
                        1023.0,
                        1024.0,
                        1074.0,
                        1075.0,
                        39000.0,
                        1e5,
                        8388608.0,
                        16777216.0,
                        1e10,
                        4503599627370496.0,
                        1.8446744e19,
                        1e20,
                        1e30,
                        1e38,
                        1.3e154,
                        1e300}) {
    if (centre > static_cast<double>(Limits::max())) continue;
    T down = static_cast<T>(centre), up = down;
    values.push_back(down);
    for (int i = 0; i < 5; ++i) {
      down = std::nextafter(down, T(0));
      up = std::nextafter(up, Limits::infinity());
      values.push_back(down);
      values.push_back(up);
    }
  }
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

// Spreads `count` values evenly over the bit patterns of [low, high] (infinities and NaN when the range is everything).
template <class T>
std::vector<T> stratified(T low, T high, int count, unsigned seed) {
  const auto key = [](T x) {  // orders numbers as integers
    const auto b = __builtin_bit_cast(Bits<T>, x);
    const Bits<T> sign = Bits<T>(1) << (sizeof(T) * 8 - 1);
    return (b & sign) != 0 ? static_cast<Bits<T>>(~b) : static_cast<Bits<T>>(b | sign);
  };
  const auto value = [](Bits<T> k) {
    const Bits<T> sign = Bits<T>(1) << (sizeof(T) * 8 - 1);
    return from_bits<T>((k & sign) != 0 ? static_cast<Bits<T>>(k & ~sign) : static_cast<Bits<T>>(~k));
  };
  std::mt19937_64 random(seed);
  const Bits<T> first = key(low), step = (key(high) - first) / static_cast<Bits<T>>(count);
  std::vector<T> values;
  for (int i = 0; i < count; ++i) {
    const auto jitter = static_cast<Bits<T>>(random() % std::max<Bits<T>>(step, 1));
    values.push_back(value(static_cast<Bits<T>>(first + step * static_cast<Bits<T>>(i) + jitter)));
  }
  return values;
}

template <class T>
constexpr int kSamples = std::is_same_v<T, float> ? 1 << 18 : 1 << 15;

// Runs `function` over [low, high] and every special value inside it.
template <class T, class F, class R>
Worst<T> sweep(F function, R reference, T low, T high) {
  std::vector<T> inputs = stratified(low, high, kSamples<T>, 1);
  const bool everything = low == -std::numeric_limits<T>::infinity() && high == std::numeric_limits<T>::infinity();
  for (T x : special_values<T>()) {
    if ((x >= low && x <= high) || (everything && std::isnan(x))) inputs.push_back(x);
  }
  while (inputs.size() % Vec<T>::N != 0) inputs.push_back(low);
  Worst<T> worst;
  T out[Vec<T>::N];
  for (std::size_t i = 0; i < inputs.size(); i += Vec<T>::N) {
    function(Vec<T>::load(&inputs[i])).store(out);
    for (int k = 0; k < Vec<T>::N; ++k) {
      const T x = inputs[i + static_cast<std::size_t>(k)];
      const double error = ulp_error<T>(out[k], reference(static_cast<Wide<T>>(x)));
      if (error > worst.error) worst = {error, x, 0, out[k]};
    }
  }
  return worst;
}

// Runs a function of two numbers over pairs of values from `inputs_a` and `inputs_b` (all pairs of specials, the rest
// drawn).
template <class T, class F, class R>
Worst<T> sweep2(F function, R reference, T low_a, T high_a, T low_b, T high_b, bool specials) {
  std::vector<T> a = stratified(low_a, high_a, kSamples<T>, 2), b = stratified(low_b, high_b, kSamples<T>, 3);
  std::shuffle(b.begin(), b.end(), std::mt19937_64(4));
  if (specials) {
    const auto values = special_values<T>();
    for (T x : values) {
      for (T y : values) {
        a.push_back(x);
        b.push_back(y);
      }
    }
  }
  while (a.size() % Vec<T>::N != 0) {
    a.push_back(T(1));
    b.push_back(T(1));
  }
  Worst<T> worst;
  T out[Vec<T>::N];
  for (std::size_t i = 0; i < a.size(); i += Vec<T>::N) {
    function(Vec<T>::load(&a[i]), Vec<T>::load(&b[i])).store(out);
    for (std::size_t k = 0; k < std::size_t(Vec<T>::N); ++k) {
      const Wide<T> expected = reference(static_cast<Wide<T>>(a[i + k]), static_cast<Wide<T>>(b[i + k]));
      const double error = ulp_error<T>(out[k], expected);
      if (error > worst.error) worst = {error, a[i + k], b[i + k], out[k]};
    }
  }
  return worst;
}

// The exact values of functions that the C library lacks.
template <class W>
W normal_cdf(W x) {
  return std::erfc(-x / std::sqrt(W(2))) / 2;
}
template <class W>
W normal_slope(W x) {
  return normal_cdf(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(W(-1)));
}
template <class W>
W sigmoid(W x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
void report(const char* name, const Worst<T>& worst, double bound) {
  INFO(name << (sizeof(T) == 4 ? " float" : " double") << ": worst error " << worst.error << " ulp at " << std::hexfloat
            << worst.at << ", " << worst.and_at << ", got " << worst.got);
  CHECK(worst.error <= bound);
#ifdef VESTA_TEST_VERBOSE  // -DVESTA_TEST_VERBOSE prints the errors that the bounds were taken from
  std::printf("%-10s %s %8.4f ulp at %a (%.9g), %a got %a\n", name, sizeof(T) == 4 ? "f" : "d", worst.error,
              double(worst.at), double(worst.at), double(worst.and_at), double(worst.got));
#endif
}

}  // namespace

#define VESTA_TEXT_OF(x) #x
#define VESTA_TEXT(x) VESTA_TEXT_OF(x)
#define ISA VESTA_TEXT(VESTA_ISA) ": "

// name, bound of float, bound of double, over all numbers.
#define CHECK_UNARY(name, bound_float, bound_double)                                                               \
  do {                                                                                                             \
    constexpr float kInf = std::numeric_limits<float>::infinity();                                                 \
    report<float>(#name, sweep<float>([](Vec<float> x) { return vesta::math::name(x); },                           \
                                      [](double x) { return std::name(x); }, -kInf, kInf), bound_float);           \
    report<double>(#name, sweep<double>([](Vec<double> x) { return vesta::math::name(x); },                        \
                                        [](long double x) { return std::name(x); }, double(-kInf), double(kInf)),  \
                   bound_double);                                                                                  \
  } while (false)
// The same for functions that std does not have; R is the reference.
#define CHECK_OWN(name, R, bound_float, bound_double)                                                              \
  do {                                                                                                             \
    constexpr float kInf = std::numeric_limits<float>::infinity();                                                 \
    report<float>(#name, sweep<float>([](Vec<float> x) { return vesta::math::name(x); },                           \
                                      [](double x) { return R(x); }, -kInf, kInf), bound_float);                   \
    report<double>(#name, sweep<double>([](Vec<double> x) { return vesta::math::name(x); },                        \
                                        [](long double x) { return R(x); }, double(-kInf), double(kInf)),          \
                   bound_double);                                                                                  \
  } while (false)
#define CHECK_BINARY(name, bound_float, bound_double)                                                              \
  do {                                                                                                             \
    constexpr float kInf = std::numeric_limits<float>::infinity();                                                 \
    report<float>(#name, sweep2<float>([](Vec<float> a, Vec<float> b) { return vesta::math::name(a, b); },         \
                                       [](double a, double b) { return std::name(a, b); }, -kInf, kInf, -kInf,     \
                                       kInf, true), bound_float);                                                  \
    report<double>(#name, sweep2<double>([](Vec<double> a, Vec<double> b) { return vesta::math::name(a, b); },     \
                                         [](long double a, long double b) { return std::name(a, b); },             \
                                         double(-kInf), double(kInf), double(-kInf), double(kInf), true),          \
                   bound_double);                                                                                  \
  } while (false)

// Bounds in ulp. 1.01 allows SLEEF's 1.0 plus the rounding of this measurement. Own functions of float lose more where
// the instruction set has no FMA.
constexpr double kOne = 1.01;
constexpr double with_fma(double bound, double without) { return simd::kHasFma ? bound : without; }

TEST_CASE(ISA "exponentials and logarithms", "[simd]") {
  CHECK_UNARY(exp, 1, 1.2);
  CHECK_UNARY(exp2, 1, 1);
  CHECK_UNARY(expm1, 1.5, 1);
  CHECK_UNARY(log, 1, 1);
  CHECK_UNARY(log2, 1, 1);
  CHECK_UNARY(log10, 1, 1);
  CHECK_UNARY(log1p, kOne, kOne);
  CHECK_UNARY(cbrt, 1, 1);
  CHECK_OWN(sigmoid, sigmoid, 2.5, 2);
}
TEST_CASE(ISA "circular functions", "[simd]") {
  CHECK_UNARY(sin, 1, 1);
  CHECK_UNARY(cos, 1, 1);
  CHECK_UNARY(tan, kOne, kOne);
  CHECK_UNARY(asin, 1, 1);
  CHECK_UNARY(acos, 1, 1);
  CHECK_UNARY(atan, 1, 1);
  CHECK_BINARY(atan2, 1.6, 1.1);
}
TEST_CASE(ISA "hyperbolic functions", "[simd]") {
  CHECK_UNARY(sinh, 2, 2);
  CHECK_UNARY(cosh, 2, 2);
  CHECK_UNARY(tanh, with_fma(0.8, 0.9), kOne);
  CHECK_UNARY(asinh, kOne, kOne);
  CHECK_UNARY(acosh, 1, 1);
  CHECK_UNARY(atanh, kOne, kOne);
}
TEST_CASE(ISA "error and gamma functions", "[simd]") {
  CHECK_UNARY(erf, with_fma(1, 1.3), 1.05);
  CHECK_UNARY(erfc, with_fma(2.4, 4.5), 1.5);
  CHECK_OWN(normal_cdf, normal_cdf, 1.8, 2);
  CHECK_UNARY(lgamma, 2.2, 1.5);
}
TEST_CASE(ISA "powers, distances, remainders", "[simd]") {
  CHECK_BINARY(pow, 1, 1);
  CHECK_BINARY(hypot, 1, 1);
  CHECK_BINARY(fmod, 0, 0);
}
TEST_CASE(ISA "not-a-number stays so, whatever its other bits", "[simd]") {
  for (std::uint32_t low : {0u, 1u, 0x80u, 0xffu, 0x100u, 0x1ffu, 0x3fffffu}) {
    for (std::uint32_t high : {0x7fc00000u, 0xffc00000u}) {
      const Vec<float> x(std::bit_cast<float>(high | low));
      const bool all = std::isnan(vesta::math::exp(x)[0]) && std::isnan(vesta::math::expm1(x)[0]) &&
                       std::isnan(vesta::math::log(x)[0]) && std::isnan(vesta::math::tanh(x)[0]) &&
                       std::isnan(vesta::math::erf(x)[0]) && std::isnan(vesta::math::erfc(x)[0]) &&
                       std::isnan(vesta::math::sigmoid(x)[0]) && std::isnan(vesta::math::normal_cdf(x)[0]) &&
                       std::isnan(vesta::math::normal_slope(x)[0]);
      CHECK(all);
    }
  }
}
TEST_CASE(ISA "roots and rounding are exact", "[simd]") {
  CHECK_UNARY(sqrt, 0.5, 0.5);
  CHECK_UNARY(floor, 0, 0);
  CHECK_UNARY(ceil, 0, 0);
  CHECK_UNARY(trunc, 0, 0);
  CHECK_OWN(round, std::nearbyint, 0, 0);
}
TEST_CASE(ISA "ordinary ranges, densely", "[simd]") {
  // In the range of a network's numbers, the sweeps over all bit patterns above leave few samples.
  const auto check = [](const char* name, auto function, auto reference, float low, float high, double bound) {
    report<float>(name, sweep<float>(function, reference, low, high), bound);
  };
#define CHECK_RANGE(name, low, high, bound)                                                                   \
  check(#name, [](Vec<float> x) { return vesta::math::name(x); }, [](double x) { return std::name(x); },      \
        low, high, bound)
  CHECK_RANGE(exp, -104.0f, 89.0f, 1);
  CHECK_RANGE(expm1, -18.0f, 89.0f, 1.5);
  CHECK_RANGE(log, 1e-3f, 1e3f, 1);
  CHECK_RANGE(log, 0.5f, 2.0f, 1);
  CHECK_RANGE(tanh, 0.01f, 10.0f, with_fma(0.8, 0.9));
  CHECK_RANGE(erf, 0.01f, 4.5f, with_fma(1, 1.3));
  CHECK_RANGE(erfc, 0.01f, 10.5f, with_fma(2.4, 4.5));
  CHECK_RANGE(erfc, -4.5f, -0.01f, with_fma(2.4, 4.5));
#undef CHECK_RANGE
  check("normal_cdf", [](Vec<float> x) { return simd::normal_cdf(x); }, normal_cdf<double>, -14.5f, -0.01f, 1.8);
  check(  // 2.5: no more than two floats from the one next to the exact value
      "gelu", [](Vec<float> x) { return x * simd::normal_cdf(x); }, [](double x) { return x * normal_cdf(x); }, -10.0f,
      -0.01f, 2.5);
  check("sigmoid", [](Vec<float> x) { return simd::sigmoid(x); }, sigmoid<double>, -105.0f, -0.01f, 2.5);
}
TEST_CASE(ISA "the slope of x normal_cdf(x)", "[simd]") {
  const auto ulps = [](const char* name, float low, float high, double bound) {
    report<float>(
        name, sweep<float>([](Vec<float> x) { return simd::normal_slope(x); }, normal_slope<double>, low, high), bound);
  };
  ulps("normal_slope, lower tail", -15.0f, -1.0f, 3);
  ulps("normal_slope, upper tail", 1.0f, 1e30f, 1);
  double worst = 0;  // beside its zero, at -0.75: in units of 2^-24
  for (int i = -4096; i < 4096; i += Vec<float>::N) {
    float x[Vec<float>::N], y[Vec<float>::N];
    for (int k = 0; k < Vec<float>::N; ++k) x[k] = float(i + k) / 4096 * (k % 2 == 0 ? 1.0f : 1.5f);
    simd::normal_slope(Vec<float>::load(x)).store(y);
    for (int k = 0; k < Vec<float>::N; ++k) {
      worst = std::max(worst, std::abs(double(y[k]) - normal_slope<double>(x[k])) * 0x1p24);
    }
  }
  CHECK(worst < 2);
  const float infinity = std::numeric_limits<float>::infinity();
  for (float x : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK(std::isnan(simd::normal_slope(Vec<float>(x))[0]));
  }
}
namespace {
/// The formulas whose loops test several vectors at once.
struct ExpFormula {
  template <class V> static V forward(V x) { return vesta::math::exp(x); }
};
struct SigmoidFormula {
  template <class V> static V forward(V x) { return vesta::math::sigmoid(x); }
};
struct NormalFormula {
  template <class V> static V of_normal_cdf(V x, V cdf) { return x * cdf; }
};
}  // namespace

TEST_CASE(ISA "several vectors at once have the bits of one", "[simd]") {
  const auto equal = [](Vec<float> a, Vec<float> b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  bool same = true;
  for (int i = 0; i < 100000; ++i) {
    Vec<float> x[4], e[4], s[4];
    for (int k = 0; k < 4; ++k) {
      float lanes[Vec<float>::N];
      for (int l = 0; l < Vec<float>::N; ++l) lanes[l] = float((i * 4 + k) * Vec<float>::N + l) * 2.71828e-5f - 87.0f;
      x[k] = e[k] = s[k] = simd::lower_or_first(Vec<float>::load(lanes), Vec<float>(87.0f));
    }
    REQUIRE(simd::compute_moderate<ExpFormula>(e));
    REQUIRE(simd::compute_moderate<SigmoidFormula>(s));
    for (int k = 0; k < 4; ++k) same = same && equal(e[k], simd::exp(x[k])) && equal(s[k], simd::sigmoid(x[k]));
  }
  CHECK(same);
  for (float x : {88.0f, -88.0f, std::numeric_limits<float>::quiet_NaN()}) {
    Vec<float> v[4] = {Vec<float>(1.0f), Vec<float>(x), Vec<float>(0.0f), Vec<float>(2.0f)};
    CHECK_FALSE(simd::compute_moderate<ExpFormula>(v));
  }
  for (int i = 0; i < 20000; ++i) {
    Vec<float> x[4], y[4];
    float lanes[4 * Vec<float>::N];
    for (int k = 0; k < 4 * Vec<float>::N; ++k) lanes[k] = float(i % 9970 * 4 + k % 61 - 19920) / 20100 * 4.75f;
    for (int k = 0; k < 4; ++k) x[k] = y[k] = Vec<float>::load(lanes + k * Vec<float>::N);
    if (i % 3 == 0) x[i % 4] = y[i % 4] = y[i % 4] * Vec<float>(4.0f);  // some of them far
    simd::compute_of_normal<NormalFormula>(y);
    for (int k = 0; k < 4; ++k) same = same && equal(y[k], x[k] * simd::normal_cdf(x[k]));
    // nor does a lane's value depend on the others being near
    float near_lanes[Vec<float>::N];
    std::copy_n(lanes, Vec<float>::N, near_lanes);
    lanes[i % Vec<float>::N] = i % 2 == 0 ? -5.0f : 6.0f;
    const Vec<float> cdf = simd::normal_cdf(Vec<float>::load(lanes)),
                     slope = simd::normal_slope(Vec<float>::load(lanes));
    x[0] = Vec<float>::load(near_lanes);
    const Vec<float> cdf_near = simd::normal_cdf(x[0]), slope_near = simd::normal_slope(x[0]);
    for (int k = 0; k < Vec<float>::N; ++k) {
      same = same && (k == i % Vec<float>::N || (cdf[k] == cdf_near[k] && slope[k] == slope_near[k]));
    }
  }
  CHECK(same);
  const float infinity = std::numeric_limits<float>::infinity();
  for (float x : {4.75f, -5.0f, -20.0f, infinity}) {
    Vec<float> v[4] = {Vec<float>(1.0f), Vec<float>(x), Vec<float>(0.0f), Vec<float>(2.0f)};
    simd::compute_of_normal<NormalFormula>(v);
    CHECK(equal(v[1], Vec<float>(x) * simd::normal_cdf(Vec<float>(x))));
  }
  Vec<float> nan[4] = {Vec<float>(1.0f), Vec<float>(std::numeric_limits<float>::quiet_NaN()), Vec<float>(0.0f),
                       Vec<float>(2.0f)};
  simd::compute_of_normal<NormalFormula>(nan);
  CHECK(std::isnan(nan[1][0]));
}
