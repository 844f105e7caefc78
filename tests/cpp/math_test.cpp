// Integers, bool and complex numbers in the primitives of core/ops/math.h.
#include <vesta/core/ops/math.h>

#include <catch2/catch.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>

namespace {

namespace math = vesta::math;

// Floor division and its remainder from their definition, in 64 bits.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

template <class T>
void check_small_integers() {
  int wrong = 0;
  for (int a = std::numeric_limits<T>::min(); a <= std::numeric_limits<T>::max(); ++a) {
    for (int b = std::numeric_limits<T>::min(); b <= std::numeric_limits<T>::max(); ++b) {
      const T x = static_cast<T>(a), y = static_cast<T>(b);
      if (b == 0) {
        wrong += math::trunc_divide(x, y) != 0 || math::floor_divide(x, y) != 0 || math::fmod(x, y) != 0 ||
                 math::remainder(x, y) != 0;
        continue;
      }
      const auto floor = floor_quotient(a, b);
      wrong += math::trunc_divide(x, y) != static_cast<T>(a / b);
      wrong += math::fmod(x, y) != static_cast<T>(a % b);
      wrong += math::floor_divide(x, y) != static_cast<T>(floor);
      wrong += math::remainder(x, y) != static_cast<T>(a - floor * b);
      wrong += math::maximum(x, y) != std::max(x, y) || math::minimum(x, y) != std::min(x, y);
    }
  }
  CHECK(wrong == 0);
}

template <class T>
bool close(std::complex<T> got, std::complex<long double> expected, double ulps) {
  const long double unit = std::numeric_limits<T>::epsilon() * std::abs(expected);
  return std::abs(std::complex<long double>(got) - expected) <= ulps * unit + std::numeric_limits<T>::denorm_min();
}

template <class T>
void check_complex() {
  using C = std::complex<T>;
  using W = std::complex<long double>;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> part(-3, 3);
  int wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const C z(static_cast<T>(part(random)), static_cast<T>(part(random)));
    const C w(static_cast<T>(part(random)), static_cast<T>(part(random)));
    const W zz(z), ww(w);
    wrong += !close(math::exp(z), std::exp(zz), 4) || !close(math::log(z), std::log(zz), 4);
    wrong += !close(math::sqrt(z), std::sqrt(zz), 4) || !close(math::tanh(z), std::tanh(zz), 8);
    wrong += !close(math::sin(z), std::sin(zz), 8) || !close(math::pow(z, w), std::pow(zz, ww), 60);
    wrong += !close(z * w, zz * ww, 4) || !close(z / w, zz / ww, 8);
    wrong += !close(math::pow(z, C(3)), zz * zz * zz, 8) || !close(math::pow(z, C(-2)), W(1) / (zz * zz), 8);
    wrong += !close(math::log2(z), std::log(zz) / std::log(2.0L), 4);
    wrong += !close(math::log10(z), std::log10(zz), 4);
    wrong += !close(math::exp2(z), std::exp(zz * std::log(2.0L)), 8);
    wrong += !close(math::sigmoid(z), W(1) / (W(1) + std::exp(-zz)), 40);
    wrong += !close(C(math::abs(z)), W(std::abs(zz)), 2) || !close(C(math::angle(z)), W(std::arg(zz)), 2);
    wrong += math::conj(z) != std::conj(z) || math::isnan(z) || !math::isfinite(z);
    // Near zero expm1 and log1p must not cancel.
    const C small = z * T(1e-3);
    const W s(small);
    const W series = s * (W(1) + s / 2.0L * (W(1) + s / 3.0L * (W(1) + s / 4.0L * (W(1) + s / 5.0L))));
    const W log_series = s * (W(1) - s * (W(0.5L) - s * (W(1.0L / 3) - s * (W(0.25L) - s * (W(0.2L) - s / 6.0L)))));
    wrong += !close(math::expm1(small), series, sizeof(T) == 4 ? 4 : 64);
    wrong += !close(math::log1p(small), log_series, sizeof(T) == 4 ? 4 : 64);
  }
  CHECK(wrong == 0);
}

// A formula as ops write it; unqualified calls must find the scalars although std:: has functions of these names.
template <class V>
V formula(V x) {
  using math::abs, math::conj, math::exp, math::log1p, math::select;
  return select(math::isnan(x), math::lit<V>(0), exp(conj(x)) + log1p(V(abs(x))) * math::lit<V>(0.5));
}

}  // namespace

TEST_CASE("integers: division rounds as Python's and C's and never traps", "[math]") {
  check_small_integers<std::int8_t>();
  check_small_integers<std::uint8_t>();
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  CHECK(math::trunc_divide(lowest, std::int64_t{-1}) == lowest);
  CHECK(math::floor_divide(lowest, std::int64_t{-1}) == lowest);
  CHECK(math::fmod(lowest, std::int64_t{-1}) == 0);
  CHECK(math::remainder(lowest, std::int64_t{-1}) == 0);
  CHECK(math::remainder(std::numeric_limits<std::int32_t>::min(), -1) == 0);
  CHECK(math::remainder(-7, 3) == 2);
  CHECK(math::remainder(7, -3) == -2);
  CHECK(math::floor_divide(-7, 2) == -4);
}

TEST_CASE("integers: absolute values and powers wrap", "[math]") {
  CHECK(math::abs(std::int8_t{-128}) == -128);
  CHECK(math::abs(std::numeric_limits<std::int64_t>::min()) == std::numeric_limits<std::int64_t>::min());
  CHECK(math::abs(std::uint8_t{200}) == 200);
  CHECK(math::sign(std::uint8_t{200}) == 1);
  CHECK(math::sign(-5) == -1);
  CHECK(math::pow(std::int8_t{3}, std::int8_t{5}) == static_cast<std::int8_t>(243));
  CHECK(math::pow(std::int64_t{3}, std::int64_t{39}) == 4052555153018976267);
  CHECK(math::pow(2, 40) == 0);
  CHECK(math::pow(7, 0) == 1);
  CHECK(math::pow(0, 0) == 1);
  CHECK(math::pow(2, -1) == 0);
  CHECK(math::pow(-1, -3) == -1);
  CHECK(math::pow(-1, -4) == 1);
  CHECK(math::pow(0, -1) == 0);
  CHECK(math::pow(true, false));
  CHECK(!math::isnan(3));
  CHECK(math::clamp(5, 1, 3) == 3);
  CHECK(math::clamp(5, 4, 3) == 3);
}

TEST_CASE("reals: extremes, remainders, signs", "[math]") {
  CHECK(std::isnan(math::maximum(1.0, double{NAN})));
  CHECK(std::isnan(math::minimum(float{NAN}, 1.0f)));
  CHECK(math::fmax(1.0, double{NAN}) == 1.0);
  CHECK(math::remainder(-7.5, 2.0) == 0.5);
  CHECK(math::remainder(7.5, -2.0) == -0.5);
  CHECK(std::isnan(math::remainder(1.0, 0.0)));
  CHECK(math::floor_divide(-7.5f, 2.0f) == -4.0f);
  CHECK(math::floor_divide(1.0, 0.1) == 9.0);
  CHECK(math::floor_divide(1.0, 0.0) == double{INFINITY});
  CHECK(std::signbit(math::floor_divide(-0.0, 5.0)));
  CHECK(math::trunc_divide(-7.5, 2.0) == -3.0);
  CHECK(math::sign(double{NAN}) == 0.0);
  CHECK(math::round(2.5) == 2.0);
  CHECK(math::angle(-0.0) == 0.0);
  CHECK(math::angle(-2.0) == Approx(3.14159265358979));
  CHECK(std::isnan(math::angle(double{NAN})));
  CHECK(math::sigmoid(-1000.0) == 0.0);
  CHECK(math::sigmoid(-100.0f) > 0.0f);
  CHECK(math::normal_cdf(0.0) == 0.5);
}

TEST_CASE("complex: functions agree with the wider ones of std", "[math]") {
  check_complex<float>();
  check_complex<double>();
}

TEST_CASE("complex: special values", "[math]") {
  using C = std::complex<double>;
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(math::pow(C(0), C(0)) == C(1));
  CHECK(math::pow(C(0), C(2, 1)) == C(0));
  CHECK(math::isnan(math::pow(C(0), C(-1))));
  CHECK(math::pow(C(kNan), C(0)) == C(1));
  CHECK(math::pow(C(3, 4), C(1)) == C(3, 4));
  CHECK(math::pow(C(0, 1), C(2)) == C(-1, 0));
  CHECK(math::abs(C(kInf, kNan)) == kInf);
  CHECK(math::abs(C(3e200, 4e200)) == Approx(5e200));
  CHECK(math::sgn(C(0)) == C(0));
  CHECK(math::sgn(C(3, 4)) == C(0.6, 0.8));
  CHECK(math::isinf(C(1, kInf)));
  CHECK(!math::isfinite(C(1, kNan)));
  CHECK(math::exp(C(-kInf, 0)) == C(0));
  CHECK(math::sqrt(C(-4, 0)) == C(0, 2));
  CHECK(math::sqrt(C(-4, -0.0)) == C(0, -2));
  CHECK(math::log(C(-1, 0)).imag() == Approx(3.14159265358979));
}

TEST_CASE("one formula for every scalar", "[math]") {
  CHECK(formula(0.0) == 1.0);
  CHECK(formula(0.0f) == 1.0f);
  CHECK(formula(std::complex<float>(0)) == std::complex<float>(1));
  CHECK(formula(double{NAN}) == 0.0);
  CHECK(math::lit<int>(3) == 3);
  CHECK(math::select((1 < 2) & (2 < 3), 4, 5) == 4);
}
