// Philox against its published vectors, and the distributions made from it.
#include <vesta/core/base/philox.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace {

using vesta::Philox4;

// Returns the standard normal distribution function.
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Returns the largest distance between the distribution of `sorted` and `cdf` (Kolmogorov and Smirnov), times sqrt(n).
template <class T, class F>
double ks_statistic(std::vector<T> sample, F cdf) {
  std::sort(sample.begin(), sample.end());
  const double n = static_cast<double>(sample.size());
  double worst = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(static_cast<double>(sample[i]));
    worst = std::max({worst, std::fabs(p - static_cast<double>(i) / n), std::fabs(p - static_cast<double>(i + 1) / n)});
  }
  return worst * std::sqrt(n);
}

template <class T, bool Normal>
std::vector<T> fill(std::uint64_t seed, std::uint64_t offset, std::int64_t first, std::int64_t n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  vesta::random_fill<T, Normal>(seed, offset, first, n, values.data());
  return values;
}

template <class T, bool Normal>
void check_elements() {
  // The fill of any range is the elements' values, whatever its start and length.
  const std::int64_t carry = (std::int64_t{1} << 34) - 64;  // the block number passes 2^32 (2^33) within the range
  for (std::int64_t first : {std::int64_t{0}, std::int64_t{4}, std::int64_t{1} << 34, carry}) {
    for (std::int64_t n : {1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 1000}) {
      const auto values = fill<T, Normal>(42, 7, first, n);
      int wrong = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<std::uint64_t>(first + i);
        const T expected = Normal ? vesta::random_normal<T>(42, 7, at) : vesta::random_uniform<T>(42, 7, at);
        wrong += values[static_cast<std::size_t>(i)] != expected;
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("philox4x32: published vectors of ten rounds") {
  // Random123's kat_vectors.
  struct Known {
    Philox4 counter;
    std::uint32_t key[2];
    Philox4 expected;
  };
  const Known vectors[] = {{{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
                           {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
                            {0xffffffff, 0xffffffff},
                            {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
                           {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                            {0xa4093822, 0x299f31d0},
                            {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const Known& v : vectors) {
    const Philox4 got = vesta::philox4x32(v.counter, v.key[0], v.key[1]);
    for (int k = 0; k < 4; ++k) CHECK(got.word[k] == v.expected.word[k]);
  }
  static_assert(vesta::philox_block(0, 0, 0).word[0] == 0x6627e8d5);
}

TEST_CASE("philox: seed, offset and block all reach the words") {
  const Philox4 base = vesta::philox_block(1, 1, 1);
  for (const Philox4& other : {vesta::philox_block(1ull << 32, 1, 1), vesta::philox_block(1, 1ull << 32, 1),
                               vesta::philox_block(1, 1, 1ull << 32), vesta::philox_block(2, 1, 1),
                               vesta::philox_block(1, 2, 1), vesta::philox_block(1, 1, 2)}) {
    CHECK(other.word[0] != base.word[0]);
  }
}

TEST_CASE("uniform: the ends of the range") {
  CHECK(vesta::uniform_float(0) == 0.0f);
  CHECK(vesta::uniform_float(0xffffffffu) == 1.0f - 0x1p-24f);
  CHECK(vesta::uniform_float(0x80000000u) == 0.5f);
  CHECK(vesta::uniform_double(std::uint64_t{0}) == 0.0);
  CHECK(vesta::uniform_double(~std::uint64_t{0}) == 1.0 - 0x1p-53);
  CHECK(vesta::uniform_double(std::uint64_t{1} << 63) == 0.5);
  CHECK(vesta::uniform_double((std::uint64_t{1} << 63) | 63u) == 0.5);
  CHECK(vesta::uniform_double(std::uint64_t{1} << 6) == 0x1p-53);
}

TEST_CASE("fill: every element has the value of its index") {
  check_elements<float, false>();
  check_elements<float, true>();
  check_elements<double, false>();
  check_elements<double, true>();
}

TEST_CASE("distributions: Kolmogorov-Smirnov and moments of 2^20 values") {
  const std::int64_t n = 1 << 20;
  const auto unit = [](double x) { return x; };
  // 1.95 is exceeded by chance once in 1000; seeds are fixed, so the result is deterministic.
  CHECK(ks_statistic(fill<float, false>(3, 0, 0, n), unit) < 1.95);
  CHECK(ks_statistic(fill<double, false>(3, 1, 0, n), unit) < 1.95);
  CHECK(ks_statistic(fill<float, true>(3, 2, 0, n), normal_cdf) < 1.95);
  const auto normal = fill<double, true>(3, 3, 0, n);
  CHECK(ks_statistic(normal, normal_cdf) < 1.95);
  double moment[5] = {}, neighbours = 0;
  for (std::size_t i = 0; i < normal.size(); ++i) {
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(normal[i], k) / static_cast<double>(n);
    if (i > 0) neighbours += normal[i] * normal[i - 1] / static_cast<double>(n);
  }
  // Five standard deviations of each estimate.
  const double sigma = 5 / std::sqrt(static_cast<double>(n));
  CHECK(std::fabs(moment[1]) < sigma);
  CHECK(std::fabs(moment[2] - 1) < sigma * std::sqrt(2.0));
  CHECK(std::fabs(moment[3]) < sigma * std::sqrt(15.0));
  CHECK(std::fabs(moment[4] - 3) < sigma * std::sqrt(96.0));
  CHECK(std::fabs(neighbours) < sigma);
}

TEST_CASE("normal: the polynomials keep their stated errors") {
  constexpr long double kTurn = 6.283185307179586476925286766559L;
  double worst_float = 0, worst_double = 0;
  const auto measure = [&](std::uint32_t a, std::uint32_t b) {
    const auto got = vesta::normal_pair(a, b);
    const long double u = static_cast<float>((a + 0.5L) * 0x1p-32L);  // the function rounds u to float first
    if (u == 1.0L) return;
    const long double radius = std::sqrt(-2 * std::log(u));
    const long double angle = kTurn * b * 0x1p-32L;
    worst_float = std::max({worst_float, std::fabs(double((got.first - radius * std::cos(angle)) / radius)),
                            std::fabs(double((got.second - radius * std::sin(angle)) / radius))});
  };
  const std::array<std::uint32_t, 13> ends = {0u,          1u,          2u,          0x1fffffffu, 0x20000000u,
                                              0x20000001u, 0x7fffffffu, 0x80000000u, 0xb504f333u, 0xb504f334u,
                                              0xe0000000u, 0xfffffffeu, 0xf0000000u};
  for (std::uint32_t a : ends) {
    for (std::uint32_t b : ends) measure(a, b);
  }
  for (std::uint64_t i = 0; i < (1 << 18); ++i) {
    const Philox4 w = vesta::philox_block(5, 5, i);
    measure(w.word[0], w.word[1]);
    const auto got = vesta::normal_pair(w);
    const long double k = static_cast<long double>((std::uint64_t{w.word[0] >> 5} << 26) | (w.word[1] >> 6));
    const long double radius = std::sqrt(-2 * std::log((k + 1) * 0x1p-53L));
    const long double angle = kTurn * (w.word[2] * 0x1p-32L + (w.word[3] >> 11) * 0x1p-53L);
    worst_double = std::max({worst_double, std::fabs(double((got.first - radius * std::cos(angle)) / radius)),
                             std::fabs(double((got.second - radius * std::sin(angle)) / radius))});
  }
  INFO("worst errors " << worst_float << " and " << worst_double);
  CHECK(worst_float < 5e-7);
  CHECK(worst_double < 1e-15);
  // u rounds to 1 at the top of the range: the radius is 0, not NaN.
  CHECK(vesta::normal_pair(0xffffffffu, 0x12345678u).first == 0.0f);
  CHECK(std::fabs(vesta::normal_pair(0u, 0u).first - 6.7637f) < 1e-3f);
}

TEST_CASE("normal: bits do not change") {
  // These bits are a promise: a seed gives the same tensor with every instruction set, device and version.
  CHECK(vesta::random_normal<float>(0, 0, 0) == vesta::normal_pair(0x6627e8d5u, 0xe169c58du).first);
  const std::uint32_t first = __builtin_bit_cast(std::uint32_t, vesta::random_normal<float>(0, 0, 0));
  const std::uint64_t second = __builtin_bit_cast(std::uint64_t, vesta::random_normal<double>(0, 0, 0));
  std::uint32_t sum = 0;
  for (float v : fill<float, true>(9, 9, 0, 1 << 16)) sum = sum * 31 + __builtin_bit_cast(std::uint32_t, v);
  std::uint64_t wide = 0;
  for (double v : fill<double, true>(9, 9, 0, 1 << 16)) wide = wide * 31 + __builtin_bit_cast(std::uint64_t, v);
  CHECK(first == 0x3f7dbb31u);
  CHECK(second == 0xbfbf1bcd538d1428u);
  CHECK(sum == 0x85d1f65cu);
  CHECK(wide == 0x0326eb16d671a792u);
}
