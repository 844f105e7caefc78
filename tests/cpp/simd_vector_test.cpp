// Loads, stores, conversions, operators and masks of Vec against plain scalar code, and the promise that an element's
// bits do not depend on where in a vector it stands. Compiled once per instruction set (see simd_requirement.cpp).
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

namespace simd = vesta::cpu::VESTA_ISA_NS;
namespace math = vesta::math;
using simd::Mask;
using simd::Vec;
using vesta::BFloat16;
using vesta::Half;

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b);
}

// Numbers of all sizes, infinities, zeros and NaN.
template <class T>
std::vector<T> samples(std::size_t n) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           T(-0.0),
                           Limits::infinity(),
                           -Limits::infinity(),
                           T(NAN),
                           Limits::max(),
                           Limits::lowest(),
                           Limits::min(),
                           Limits::denorm_min(),
                           T(0.5),
                           T(-0.5),
                           T(1.5),
                           T(2.5),
                           T(-2.5),
                           T(1),
                           T(-1)};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(-20, 20);
  while (values.size() < n) {
    values.push_back(static_cast<T>(std::exp2(exponent(random)) * (random() % 2 == 0 ? 1 : -1)));
  }
  return values;
}

// Functions are found unqualified after a using-declaration as well as by their full names.
template <class V>
V unqualified(V x) {
  using math::abs, math::conj, math::copysign, math::exp, math::fmax, math::fmin, math::fmod, math::isfinite;
  using math::isinf, math::isnan, math::log1p, math::maximum, math::minimum, math::normal_cdf, math::pow;
  using math::rsqrt, math::select, math::sigmoid, math::sign, math::sinh;
  const V y = maximum(minimum(x, abs(x)), fmax(fmin(x, conj(x)), copysign(x, sign(x))));
  const V z = select(isnan(y) | isinf(y) | !isfinite(y), sinh(y), log1p(abs(y)));
  return pow(fmod(abs(z), exp(y)), sigmoid(y)) + normal_cdf(rsqrt(abs(y)));
}

// Applies `vector` to every value and every pair of neighbours, and `scalar` one by one; counts different bits.
template <class T, class F, class G>
int differences(F vector, G scalar) {
  const auto a = samples<T>(512);
  int wrong = 0;
  for (std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{11}}) {
    std::vector<T> b(a.begin() + static_cast<std::ptrdiff_t>(shift), a.end());
    b.insert(b.end(), a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shift));
    for (std::size_t i = 0; i < a.size(); i += Vec<T>::N) {
      T out[Vec<T>::N];
      Vec<T>(vector(Vec<T>::load(&a[i]), Vec<T>::load(&b[i]))).store(out);
      for (std::size_t k = 0; k < std::size_t(Vec<T>::N); ++k) {
        wrong += !same_bits(out[k], static_cast<T>(scalar(a[i + k], b[i + k])));
      }
    }
  }
  return wrong;
}

template <class T>
void check_operators() {
  using V = Vec<T>;
  CHECK(differences<T>([](V a, V b) { return a + b; }, [](T a, T b) { return a + b; }) == 0);
  CHECK(differences<T>([](V a, V b) { return a - b; }, [](T a, T b) { return a - b; }) == 0);
  CHECK(differences<T>([](V a, V b) { return a * b; }, [](T a, T b) { return a * b; }) == 0);
  CHECK(differences<T>([](V a, V b) { return a / b; }, [](T a, T b) { return a / b; }) == 0);
  CHECK(differences<T>([](V a, V) { return -a; }, [](T a, T) { return -a; }) == 0);
  CHECK(differences<T>([](V a, V) { return math::abs(a); }, [](T a, T) { return std::fabs(a); }) == 0);
  CHECK(differences<T>([](V a, V b) { return math::copysign(a, b); }, [](T a, T b) { return std::copysign(a, b); }) ==
        0);
  CHECK(differences<T>([](V a, V) { return math::sqrt(a); }, [](T a, T) { return std::sqrt(a); }) == 0);
  CHECK(differences<T>([](V a, V) { return math::rsqrt(a); }, [](T a, T) { return T(1) / std::sqrt(a); }) == 0);
  CHECK(differences<T>([](V a, V b) { return math::maximum(a, b); }, [](T a, T b) { return math::maximum(a, b); }) ==
        0);
  CHECK(differences<T>([](V a, V b) { return math::minimum(a, b); }, [](T a, T b) { return math::minimum(a, b); }) ==
        0);
  CHECK(differences<T>([](V a, V b) { return math::fmax(a, b); }, [](T a, T b) { return b != b || a >= b ? a : b; }) ==
        0);
  CHECK(differences<T>([](V a, V b) { return math::fmin(a, b); }, [](T a, T b) { return b != b || a <= b ? a : b; }) ==
        0);
  CHECK(differences<T>([](V a, V) { return math::sign(a); }, [](T a, T) { return T((a > 0) - (a < 0)); }) == 0);
  CHECK(differences<T>([](V a, V b) { return math::remainder(a, b); },
                       [](T a, T b) { return math::remainder(a, b); }) == 0);
  CHECK(differences<T>([](V a, V b) { return math::floor_divide(a, b); },
                       [](T a, T b) { return math::floor_divide(a, b); }) == 0);
  CHECK(differences<T>([](V a, V b) { return math::clamp(a, b, V(T(1))); },
                       [](T a, T b) { return math::clamp(a, b, T(1)); }) == 0);
  CHECK(math::isfinite(unqualified(V(T(0.5)))).bits() == simd::Mask<T>(true).bits());
  // 1 - x with an integer constant, as in formulas.
  CHECK(differences<T>([](V a, V) { return 1 - a * 2; }, [](T a, T) { return 1 - a * 2; }) == 0);
}

template <class T>
void check_masks() {
  using V = Vec<T>;
  const auto pick = [](auto mask) { return math::select(mask, V(T(1)), V(T(0))); };
  CHECK(differences<T>([&](V a, V b) { return pick(a < b); }, [](T a, T b) { return a < b; }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick(a <= b); }, [](T a, T b) { return a <= b; }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick(a > b); }, [](T a, T b) { return a > b; }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick(a >= b); }, [](T a, T b) { return a >= b; }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick(a == b); }, [](T a, T b) { return a == b; }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick(a != b); }, [](T a, T b) { return a != b; }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick((a < b) & (a > 0)); }, [](T a, T b) { return a < b && a > 0; }) ==
        0);
  CHECK(differences<T>([&](V a, V b) { return pick((a < b) | (a > 0)); }, [](T a, T b) { return a < b || a > 0; }) ==
        0);
  CHECK(differences<T>([&](V a, V b) { return pick((a < b) ^ (a > 0)); },
                       [](T a, T b) { return (a < b) != (a > 0); }) == 0);
  CHECK(differences<T>([&](V a, V b) { return pick(!(a < b)); }, [](T a, T b) { return !(a < b); }) == 0);
  CHECK(differences<T>([&](V a, V) { return pick(math::isnan(a)); }, [](T a, T) { return a != a; }) == 0);
  CHECK(differences<T>([&](V a, V) { return pick(math::isinf(a)); }, [](T a, T) { return std::isinf(a); }) == 0);
  CHECK(differences<T>([&](V a, V) { return pick(math::isfinite(a)); }, [](T a, T) { return std::isfinite(a); }) == 0);
  CHECK(differences<T>([&](V a, V) { return pick(simd::signbit(a)); }, [](T a, T) { return std::signbit(a); }) == 0);
  CHECK(simd::all(Mask<T>(true)));
  CHECK(!simd::any(Mask<T>(false)));
  bool bytes[Mask<T>::N + 1] = {};
  bytes[Mask<T>::N - 1] = true;
  bytes[0] = true;
  const Mask<T> mask = Mask<T>::load(bytes);
  CHECK(mask[0]);
  CHECK(mask[Mask<T>::N - 1]);
  CHECK(mask.bits() == (1u | (1u << (Mask<T>::N - 1))));
  bool back[Mask<T>::N + 1];
  std::memset(back, 7, sizeof back);
  mask.store(back, 1);
  CHECK(back[0]);
  CHECK(reinterpret_cast<unsigned char*>(back)[1] == 7);
  mask.store(back);
  CHECK(std::memcmp(back, bytes, Mask<T>::N) == 0);
}

// Runs `function` over `n` elements as a kernel does.
template <class T, class F>
void run(F function, const T* x, T* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + Vec<T>::N <= n; i += Vec<T>::N) function(Vec<T>::load(x + i)).store(y + i);
  if (i < n) function(Vec<T>::load_partial(x + i, n - i)).store_partial(y + i, n - i);
}

// Checks that every element of every length and offset has the bits that it has alone, and that nothing beyond the end
// is written.
template <class T, class F>
int position_differences(F function) {
  const auto x = samples<T>(4 * Vec<T>::N + 8);
  std::vector<T> alone(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) run<T>(function, &x[i], &alone[i], 1);
  int wrong = 0;
  for (std::size_t start : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    for (std::size_t n = 1; n <= 3 * std::size_t(Vec<T>::N); ++n) {
      std::vector<T> y(n + 1, T(12345));
      run<T>(function, &x[start], y.data(), static_cast<std::int64_t>(n));
      for (std::size_t i = 0; i < n; ++i) wrong += !same_bits(y[i], alone[start + i]);
      wrong += y[n] != T(12345);
    }
  }
  return wrong;
}

template <class S>
void check_conversion(bool rounds) {
  constexpr int kN = Vec<float>::N;
  std::mt19937 random(3);
  int wrong = 0;
  for (int pass = 0; pass < 4096; ++pass) {
    S in[kN], out[kN + 1];
    float wide[kN];
    for (int i = 0; i < kN; ++i) {
      if constexpr (vesta::is_half_type<S>) {
        in[i] = S::from_bits(static_cast<std::uint16_t>(pass * kN + i));
      } else {
        in[i] = static_cast<S>(random());
      }
    }
    simd::load_convert<float>(in).store(wide);
    for (int i = 0; i < kN; ++i) wrong += !same_bits(wide[i], static_cast<float>(in[i]));
    for (int i = 0; i < kN && rounds; ++i) {
      wide[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(random()));
    }
    simd::store_convert(Vec<float>::load(wide), out);
    for (int i = 0; i < kN && rounds; ++i) {
      const S expected = static_cast<S>(wide[i]);
      wrong += std::memcmp(&out[i], &expected, sizeof(S)) != 0;
    }
    for (int n = 1; n <= kN && pass < 8; ++n) {
      std::memset(out, 0x5a, sizeof out);
      S untouched;
      std::memset(&untouched, 0x5a, sizeof untouched);
      simd::store_convert_partial(simd::load_convert_partial<float>(in, n), out, n);
      const Vec<float> partial = simd::load_convert_partial<float>(in, n);
      for (int i = 0; i < kN; ++i) wrong += !same_bits(partial[i], i < n ? static_cast<float>(in[i]) : 0.0f);
      wrong += std::memcmp(&out[n], &untouched, sizeof(S)) != 0;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

#define VESTA_TEXT_OF(x) #x
#define VESTA_TEXT(x) VESTA_TEXT_OF(x)
#define ISA VESTA_TEXT(VESTA_ISA) ": "

TEST_CASE(ISA "vectors have the width of the instruction set", "[simd]") {
  const std::string isa = VESTA_TEXT(VESTA_ISA);
  CHECK(simd::kVectorBytes == (isa == "avx512" ? 64 : isa == "avx2" ? 32 : 16));
  CHECK(Vec<float>::N == simd::kVectorBytes / 4);
  CHECK(Vec<double>::N == simd::kVectorBytes / 8);
}

TEST_CASE(ISA "operators agree with scalars, bit by bit", "[simd]") {
  check_operators<float>();
  check_operators<double>();
}

TEST_CASE(ISA "comparisons, masks and select", "[simd]") {
  check_masks<float>();
  check_masks<double>();
}

TEST_CASE(ISA "an element has the same bits in body and tail", "[simd]") {
#define CHECK_POSITION(name)                                                                              \
  CHECK(position_differences<float>([](Vec<float> x) { return vesta::math::name(x); }) == 0);             \
  CHECK(position_differences<double>([](Vec<double> x) { return vesta::math::name(x); }) == 0)
  CHECK_POSITION(exp);
  CHECK_POSITION(exp2);
  CHECK_POSITION(expm1);
  CHECK_POSITION(log);
  CHECK_POSITION(log1p);
  CHECK_POSITION(sin);
  CHECK_POSITION(cos);
  CHECK_POSITION(tan);
  CHECK_POSITION(sinh);
  CHECK_POSITION(tanh);
  CHECK_POSITION(asinh);
  CHECK_POSITION(acosh);
  CHECK_POSITION(erf);
  CHECK_POSITION(erfc);
  CHECK_POSITION(normal_cdf);
  CHECK_POSITION(lgamma);
  CHECK_POSITION(sigmoid);
  CHECK_POSITION(cbrt);
  CHECK_POSITION(sqrt);
  CHECK_POSITION(round);
#undef CHECK_POSITION
  CHECK(position_differences<float>([](Vec<float> x) { return math::pow(math::abs(x), x); }) == 0);
  CHECK(position_differences<double>([](Vec<double> x) { return math::fmod(x, Vec<double>(0.7)); }) == 0);
  CHECK(position_differences<float>([](Vec<float> x) { return x * x + x * math::lit<Vec<float>>(0.1); }) == 0);
}

TEST_CASE(ISA "conversions agree with the scalar types, all 16-bit patterns", "[simd]") {
  check_conversion<Half>(true);
  check_conversion<BFloat16>(true);
  check_conversion<std::int8_t>(false);
  check_conversion<std::uint8_t>(false);
  check_conversion<std::int16_t>(false);
  check_conversion<std::int32_t>(false);
  check_conversion<std::int64_t>(false);
  check_conversion<double>(false);
}

TEST_CASE(ISA "stores to integers and bool", "[simd]") {
  float x[Vec<float>::N];
  for (int i = 0; i < Vec<float>::N; ++i) x[i] = static_cast<float>(i) * 3.75f - 5.0f;
  x[0] = 0.0f;
  const Vec<float> v = Vec<float>::load(x);
  std::int32_t as_int[Vec<float>::N];
  std::int8_t as_byte[Vec<float>::N];
  bool as_bool[Vec<float>::N];
  double as_double[Vec<float>::N];
  simd::store_convert(v, as_int);
  simd::store_convert(v, as_byte);
  simd::store_convert(v, as_bool);
  simd::store_convert(v, as_double);
  int wrong = 0;
  for (int i = 0; i < Vec<float>::N; ++i) {
    wrong += as_int[i] != static_cast<std::int32_t>(x[i]) || as_byte[i] != static_cast<std::int8_t>(x[i]) ||
             as_bool[i] != (x[i] != 0) || as_double[i] != x[i];
  }
  CHECK(wrong == 0);
  Half half[Vec<double>::N];
  simd::store_convert(Vec<double>(1.5), half);
  CHECK(float(half[Vec<double>::N - 1]) == 1.5f);
  const Vec<float> from_bool = simd::load_convert<float>(as_bool);
  CHECK((from_bool[0] == 0.0f && from_bool[1] == 1.0f));
}
