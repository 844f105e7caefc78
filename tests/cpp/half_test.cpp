// Every 16-bit pattern and every boundary of the two conversions, against an independent definition: the nearest of the
// two neighbours, found by comparing exact distances in double.
#include <vesta/core/base/half.h>

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace {

using vesta::BFloat16;
using vesta::Half;

float bits_to_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Decodes `pattern` as sign, `exponent_bits`, `mantissa_bits` from the definition of an IEEE format.
double decode(std::uint16_t pattern, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (pattern >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = pattern & ((1 << mantissa_bits) - 1);
  const double sign = (pattern & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// Checks that `value` became the nearest 16-bit number, an even one at a tie.
template <class T>
bool nearest_even(float value, int exponent_bits, int mantissa_bits) {
  const std::uint16_t got = T(value).bits;
  const std::uint16_t infinity = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  if (std::isnan(value)) return (got & 0x7fff) > infinity && ((got & 0x8000) != 0) == std::signbit(value);
  if (((got & 0x8000) != 0) != std::signbit(value)) return false;
  const std::uint16_t magnitude = got & 0x7fff;
  if (std::isinf(value)) return magnitude == infinity;
  const double x = std::fabs(value);
  // In rounding, infinity counts as the power of two above the largest number.
  const auto at = [&](int pattern) {
    if (pattern >= infinity) return std::ldexp(1.0, 1 << (exponent_bits - 1));
    return decode(static_cast<std::uint16_t>(pattern), exponent_bits, mantissa_bits);
  };
  const double here = std::fabs(at(magnitude) - x);
  if (magnitude == infinity && x >= at(infinity)) return true;
  const double below = magnitude > 0 ? std::fabs(at(magnitude - 1) - x) : INFINITY;
  const double above = magnitude < infinity ? std::fabs(at(magnitude + 1) - x) : INFINITY;
  const bool even = (magnitude & 1) == 0;
  return even ? here <= below && here <= above : here < below && here < above;
}

template <class T>
void check_type(int exponent_bits, int mantissa_bits) {
  int wrong_widening = 0, wrong_round_trip = 0, wrong_rounding = 0;
  for (int pattern = 0; pattern < 0x10000; ++pattern) {
    const T x = T::from_bits(static_cast<std::uint16_t>(pattern));
    const double expected = decode(x.bits, exponent_bits, mantissa_bits);
    const float wide = x;
    if (std::isnan(expected)) {
      wrong_widening += !std::isnan(wide);
      wrong_round_trip += (T(wide).bits | (1 << (mantissa_bits - 1))) != (pattern | (1 << (mantissa_bits - 1)));
      continue;
    }
    wrong_widening += static_cast<double>(wide) != expected || std::signbit(wide) != std::signbit(expected);
    wrong_round_trip += T(wide).bits != pattern;
    // The neighbourhoods of this number and of the tie above it.
    const double next = decode(static_cast<std::uint16_t>(pattern + 1), exponent_bits, mantissa_bits);
    const float tie = static_cast<float>((expected + next) / 2);
    for (float centre : {wide, tie}) {
      if (!std::isfinite(centre)) continue;
      for (float v : {centre, std::nextafter(centre, -INFINITY), std::nextafter(centre, INFINITY)}) {
        wrong_rounding += !nearest_even<T>(v, exponent_bits, mantissa_bits);
      }
    }
  }
  std::mt19937 random(1);
  for (int i = 0; i < (1 << 20); ++i) {
    const float value = bits_to_float(static_cast<std::uint32_t>(random()));
    wrong_rounding += !nearest_even<T>(value, exponent_bits, mantissa_bits);
  }
  CHECK(wrong_widening == 0);
  CHECK(wrong_round_trip == 0);
  CHECK(wrong_rounding == 0);
}

}  // namespace

TEST_CASE("half: all patterns, ties and their neighbours round to nearest even") { check_type<Half>(5, 10); }
TEST_CASE("bfloat16: all patterns, ties and their neighbours round to nearest even") { check_type<BFloat16>(8, 7); }

TEST_CASE("half: known values, at run time and in constant expressions") {
  static_assert(Half(1.0f).bits == 0x3c00 && Half(65504.0f).bits == 0x7bff && Half(65519.99f).bits == 0x7bff);
  static_assert(Half(65520.0f).bits == 0x7c00 && Half(-65520.0f).bits == 0xfc00);
  static_assert(Half(0x1p-24f).bits == 1 && Half(0x1p-25f).bits == 0 && Half(0x1.000002p-25f).bits == 1);
  static_assert(Half(0x1.8p-24f).bits == 2 && Half(-0.0f).bits == 0x8000 && float(Half::from_bits(0x0001)) == 0x1p-24f);
  static_assert(BFloat16(1.0f).bits == 0x3f80);
  static_assert(BFloat16(0x1.01p0f).bits == 0x3f80 && BFloat16(0x1.03p0f).bits == 0x3f82);
  static_assert(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80 && BFloat16(0x1p-133f).bits == 1);
  volatile float tie = 65520.0f, nan = -std::numeric_limits<float>::quiet_NaN();
  CHECK(Half(tie).bits == 0x7c00);
  CHECK(Half(nan).bits == 0xfe00);
  CHECK(BFloat16(nan).bits == 0xffc0);
}

TEST_CASE("half: run time and constant evaluation agree") {
  // The portable code is what constant evaluation runs; on a CPU with F16C the run-time path is another one.
  static constexpr std::uint32_t samples[] = {0x00000001, 0x33000000, 0x33000001, 0x387fffff, 0x38800000, 0x477fefff,
                                              0x477ff000, 0x7f800000, 0x7f800001, 0x7fc12345, 0xff812345, 0x3f801000,
                                              0x3f803000, 0x33800000, 0x33c00000, 0x80000000};
  static constexpr auto folded = [] {
    struct {
      std::uint16_t bits[std::size(samples)];
    } all{};
    for (std::size_t i = 0; i < std::size(samples); ++i) all.bits[i] = Half(std::bit_cast<float>(samples[i])).bits;
    return all;
  }();
  for (std::size_t i = 0; i < std::size(samples); ++i) {
    volatile std::uint32_t opaque = samples[i];
    CHECK(Half(bits_to_float(opaque)).bits == folded.bits[i]);
  }
}

TEST_CASE("half: numeric_limits") {
  using HL = std::numeric_limits<Half>;
  using BL = std::numeric_limits<BFloat16>;
  CHECK(float(HL::max()) == 65504.0f);
  CHECK(float(HL::min()) == 0x1p-14f);
  CHECK(float(HL::epsilon()) == 0x1p-10f);
  CHECK(float(HL::denorm_min()) == 0x1p-24f);
  CHECK(std::isinf(float(HL::infinity())));
  CHECK(std::isnan(float(HL::quiet_NaN())));
  CHECK(float(BL::max()) == 0x1.fep127f);
  CHECK(float(BL::min()) == std::numeric_limits<float>::min());
  CHECK(float(BL::epsilon()) == 0x1p-7f);
  CHECK(float(BL::lowest()) == -0x1.fep127f);
}
