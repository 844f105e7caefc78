// Random ops: streams, bounds, moments, independence of layout, and generators.
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/random.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "support.h"

using namespace vesta;
using namespace vesta::test;

namespace {

struct Moments {
  double mean = 0, variance = 0, low = INFINITY, high = -INFINITY;
  explicit Moments(const Tensor& t) {
    auto v = doubles(t);
    for (double x : v) mean += x / double(v.size()), low = std::min(low, x), high = std::max(high, x);
    for (double x : v) variance += (x - mean) * (x - mean) / double(v.size());
  }
};

}  // namespace

TEST_CASE("the same seed gives the same numbers, the next call others", "[random]") {
  NoGrad off;
  Generator g(7);
  Tensor a = rand({1000}, &g), b = rand({1000}, &g);
  g.manual_seed(7);
  REQUIRE(doubles(a) == doubles(rand({1000}, &g)));
  REQUIRE(doubles(a) != doubles(b));
  Tensor state = g.get_state();
  Tensor c = randn({33}, &g);
  g.set_state(state);
  REQUIRE(doubles(c) == doubles(randn({33}, &g)));
  REQUIRE(g.initial_seed() == 7);
  REQUIRE(cause_of([&] { g.set_state(zeros({24})); }) == Cause::type);
  REQUIRE(cause_of([&] { g.set_state(zeros({24}, DType::uint8)); }) == Cause::value);
}

TEST_CASE("number i belongs to element i, whatever the size and the layout", "[random]") {
  NoGrad off;
  Generator g(3);
  for (DType d : {DType::float32, DType::float64, DType::float16}) {
    g.manual_seed(3);
    auto large = doubles(rand({70000}, &g, d));
    g.manual_seed(3);
    auto small = doubles(rand({1001}, &g, d));
    REQUIRE(std::equal(small.begin(), small.end(), large.begin()));
    g.manual_seed(3);
    Tensor t = empty({20, 50}, d).t();
    REQUIRE(doubles(t.uniform_(0, 1, &g)) == std::vector<double>(small.begin(), small.begin() + 1000));
  }
}

TEST_CASE("uniform numbers stay below the upper bound", "[random]") {
  NoGrad off;
  manual_seed(1);
  for (DType d : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    Moments m(empty({100000}, d).uniform_(-3, 5));
    REQUIRE(m.low >= -3);
    REQUIRE(m.high < 5);
    REQUIRE(m.mean == Approx(1).margin(0.05));
    REQUIRE(m.variance == Approx(64.0 / 12).margin(0.1));
    REQUIRE(Moments(empty({100000}, d).uniform_(1, 1 + 0x1p-6)).high < 1 + 0x1p-6);
    REQUIRE(Moments(empty({10}, d).uniform_(2, 2)).high == 2);
  }
  REQUIRE(cause_of([&] { empty({2}).uniform_(1, 0); }) == Cause::runtime);
  REQUIRE(cause_of([&] { empty({2}, DType::int64).uniform_(0, 1); }) == Cause::not_implemented);
}

TEST_CASE("moments of normal, bernoulli and integers", "[random]") {
  NoGrad off;
  manual_seed(2);
  Moments n(empty({200000}).normal_(2, 3));
  REQUIRE(n.mean == Approx(2).margin(0.05));
  REQUIRE(n.variance == Approx(9).margin(0.2));
  REQUIRE(Moments(zeros({100000}).bernoulli_(0.3)).mean == Approx(0.3).margin(0.01));
  REQUIRE(Moments(zeros({1000}).bernoulli_(1)).low == 1);
  REQUIRE(Moments(ones({1000}).bernoulli_(0)).high == 0);
  REQUIRE(Moments(full({100000}, 0.7).bernoulli()).mean == Approx(0.7).margin(0.01));
  REQUIRE(cause_of([&] { (void)full({2}, 1.5).bernoulli(); }) == Cause::value);
  Moments r(randint(-5, 5, {100000}));
  REQUIRE(r.low == -5);
  REQUIRE(r.high == 4);
  REQUIRE(r.mean == Approx(-0.5).margin(0.05));
  REQUIRE(cause_of([&] { (void)randint(5, 5, {2}); }) == Cause::value);
  REQUIRE(cause_of([&] { zeros({2}, DType::uint8).random_(0, 257); }) == Cause::value);
  REQUIRE(Moments(zeros({10000}, DType::int8).random_()).high == 127);
  REQUIRE(Moments(zeros({10000}).random_(3)).high == 2);
}

TEST_CASE("dropout", "[random]") {
  NoGrad off;
  manual_seed(4);
  auto [y, mask] = native_dropout(ones({100000}), 0.25, true);
  REQUIRE(mask.dtype() == DType::bool_);
  Moments m(y);
  REQUIRE(m.mean == Approx(1).margin(0.01));
  REQUIRE(m.high == Approx(1 / 0.75));
  REQUIRE(doubles(y.ne(0)) == doubles(mask));
  REQUIRE(Moments(std::get<0>(native_dropout(ones({10}), 1, true))).high == 0);
  REQUIRE(Moments(std::get<0>(native_dropout(ones({10}), 0.5, false))).low == 1);
  REQUIRE(cause_of([&] { (void)native_dropout(ones({2}), 1.5, true); }) == Cause::value);
}

TEST_CASE("randperm is a permutation", "[random]") {
  NoGrad off;
  auto v = doubles(randperm(1000));
  REQUIRE(!std::is_sorted(v.begin(), v.end()));
  std::sort(v.begin(), v.end());
  bool whole = true;
  for (size_t i = 0; i < v.size(); ++i) whole = whole && v[i] == double(i);
  REQUIRE(whole);
  for (int64_t n : {0, 1, 2, 3, 70000}) {
    auto w = doubles(randperm(n));
    std::sort(w.begin(), w.end());
    bool each = int64_t(w.size()) == n;
    for (size_t i = 0; i < w.size(); ++i) each = each && w[i] == double(i);
    REQUIRE(each);
  }
  REQUIRE(cause_of([&] { (void)randperm(-1); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)randperm(300, nullptr, DType::uint8); }) == Cause::runtime);
}

TEST_CASE("complex normal numbers have unit variance", "[random]") {
  NoGrad off;
  manual_seed(5);
  REQUIRE(Moments(randn({100000}, nullptr, DType::complex64).abs().square()).mean == Approx(1).margin(0.02));
}
