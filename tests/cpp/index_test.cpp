// Subscripts and indexing ops: values against plain loops, order of writes, and errors before anything is written.
#include <vesta/core/index.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>

#include <catch2/catch.hpp>

#include <vector>

#include "support.h"

using namespace vesta;
using namespace vesta::test;

namespace {

Tensor of(std::initializer_list<int64_t> v, DType d = DType::int64) {
  Tensor t = empty_tensor({{int64_t(v.size())}}, DType::int64);
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t.to(d);
}
}  // namespace

TEST_CASE("basic subscripts are views", "[index]") {
  NoGrad off;
  Tensor x = range({3, 4, 5});
  REQUIRE(values(x[1][2]) == L{30, 31, 32, 33, 34});
  REQUIRE(x.index({1, 2, 3}).item<int64_t>() == 33);
  REQUIRE(list(x.index({Slice(0, 2), newaxis, ellipsis, Slice({}, {}, 2)}).sizes()) == L{2, 1, 4, 3});
  REQUIRE(list(x.index({ellipsis, -1}).sizes()) == L{3, 4});
  Tensor all = x.index({ellipsis});
  REQUIRE(!all.is_same(x));
  REQUIRE(all.data_ptr() == x.data_ptr());
  REQUIRE(cause_of([&] { (void)x.index({0, 0, 0, 0}); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)x.index({ellipsis, ellipsis}); }) == Cause::index);
  REQUIRE(message([&] { (void)x[3]; }) == "index 3 is out of bounds for dimension 0 with size 3");
  REQUIRE(message([&] { (void)x.index({0, 5}); }) == "index 5 is out of bounds for dimension 1 with size 4");
}

TEST_CASE("advanced subscripts", "[index]") {
  NoGrad off;
  Tensor x = range({3, 4, 5}), i = of({2, 0}), j = of({1, -1});
  REQUIRE(values(x.index({i, j, 0})) == L{45, 15});
  REQUIRE(list(x.index({Slice(), i}).sizes()) == L{3, 2, 5});
  REQUIRE(list(x.index({i, Slice(), j}).sizes()) == L{2, 4});
  REQUIRE(values(x.index({i, Slice(), j})) == L{41, 46, 51, 56, 4, 9, 14, 19});
  REQUIRE(list(x.index({Slice(), i.view({2, 1}), j}).sizes()) == L{3, 2, 2});
  REQUIRE(values(x.index({Slice(), of({3}), of({4})})) == L{19, 39, 59});
  REQUIRE(values(x.index({ellipsis, of({4, 0})}).slice(0, 0, 1)) == L{4, 0, 9, 5, 14, 10, 19, 15});
  REQUIRE(list(x.index({of({1}, DType::int32).select(0, 0)}).sizes()) == L{4, 5});
  REQUIRE(cause_of([&] { (void)x.index({of({3})}); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)x.index({i, of({0, 1, 2})}); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)x.index({of({1}, DType::float32)}); }) == Cause::index);
  REQUIRE(list(x.index({empty_tensor({{0}}, DType::int64)}).sizes()) == L{0, 4, 5});
}

TEST_CASE("masks", "[index]") {
  NoGrad off;
  Tensor x = range({3, 4});
  Tensor m = x.remainder(5).eq(0);
  REQUIRE(values(x.index({m})) == L{0, 5, 10});
  REQUIRE(values(x.masked_select(of({0, 1, 0, 1}, DType::bool_))) == L{1, 3, 5, 7, 9, 11});
  REQUIRE(list(x.index({of({1, 0, 1}, DType::bool_), 2}).sizes()) == L{2});
  REQUIRE(list(x.index({true}).sizes()) == L{1, 3, 4});
  REQUIRE(list(x.index({false}).sizes()) == L{0, 3, 4});
  REQUIRE(cause_of([&] { (void)x.index({of({1, 0}, DType::bool_)}); }) == Cause::index);
  REQUIRE(values(m.nonzero()) == L{0, 0, 1, 1, 2, 2});
  REQUIRE(list(zeros({}).nonzero().sizes()) == L{0, 0});
  REQUIRE(list(ones({}).nonzero().sizes()) == L{1, 0});
  REQUIRE(values(x.masked_fill(m, wrapped(-1))) == L{-1, 1, 2, 3, 4, -1, 6, 7, 8, 9, -1, 11});
  REQUIRE(cause_of([&] { (void)x.masked_fill(x, wrapped(1)); }) == Cause::runtime);
}

TEST_CASE("nonzero over many chunks", "[index]") {
  NoGrad off;
  Tensor x = arange(200000).remainder(7).eq(3).view({400, 500});
  Tensor places = x.nonzero();
  bool ordered = true;
  for (int64_t k = 0; k < places.size(0); k += 997) {
    int64_t i = places.index({k, 0}).item<int64_t>(), j = places.index({k, 1}).item<int64_t>();
    ordered = ordered && i * 500 + j == 7 * k + 3;
  }
  REQUIRE(ordered);
  REQUIRE(places.size(0) == (200000 - 4) / 7 + 1);
}

TEST_CASE("writes through subscripts", "[index]") {
  NoGrad off;
  Tensor x = zeros({3, 4}, DType::int64);
  x.index_put_({1}, wrapped(7));
  x.index_put_({Slice(), -1}, of({1, 2, 3}));
  x.index_put_({of({0, 2}), of({0, 0})}, of({8, 9}));
  REQUIRE(values(x) == L{8, 0, 0, 1, 7, 7, 7, 2, 9, 0, 0, 3});
  x.index_put_({x.gt(6)}, wrapped(0));
  REQUIRE(x.sum().item<int64_t>() == 6);
  REQUIRE(cause_of([&] { x.index_put_({of({0, 3})}, wrapped(5)); }) == Cause::index);
  REQUIRE(x.sum().item<int64_t>() == 6);  // nothing was written
  REQUIRE(cause_of([&] { x.index_put_({0}, of({1, 2, 3})); }) == Cause::value);
  REQUIRE(cause_of([&] { x.index_put_({of({0})}, of({1}, DType::float32)); }) == Cause::runtime);
  Tensor y = arange(6);
  y.index_put_({of({1, 2, 3, 4, 5})}, y.slice(0, 0, 5));
  REQUIRE(values(y) == L{0, 0, 1, 2, 3, 4});
  Tensor z = zeros({2, 3}, DType::int8);
  z.index_put_({0}, of({1, 1, 1}, DType::int8).view({1, 1, 3}));
  REQUIRE(z.sum().item<int64_t>() == 3);
  z.index_put_({z.gt(0)}, of({4, 5, 6}, DType::int8).view({1, 3}));
  REQUIRE(values(z) == L{4, 5, 6, 0, 0, 0});
  REQUIRE(cause_of([&] { z.index_put_({0}, wrapped(300)); }) == Cause::value);
}

TEST_CASE("equal places: the last one wins, sums run in order", "[index]") {
  NoGrad off;
  Tensor x = zeros({4});
  ops::index_put_(x, {of({1, 1, 1})}, of({5, 6, 7}, DType::float32), false);
  REQUIRE(values(x) == L{0, 7, 0, 0});
  ops::index_put_(x, {of({1, 1, 3})}, of({5, 6, 7}, DType::float32), true);
  REQUIRE(values(x) == L{0, 18, 0, 7});
  Tensor table = zeros({5, 300});
  Tensor rows = arange(300 * 400).remainder(13).to(DType::float32).view({400, 300});
  Tensor at = arange(400).remainder(5);
  table.index_add_(0, at, rows, 2);
  bool equal = true;
  for (int64_t c = 0; c < 300; c += 37) {
    for (int64_t r = 0; r < 5; ++r) {
      float sum = 0;
      for (int64_t k = r; k < 400; k += 5) sum += 2 * float((k * 300 + c) % 13);
      equal = equal && table.index({r, c}).item<float>() == sum;
    }
  }
  REQUIRE(equal);
}

TEST_CASE("index_select, gather, scatter_add_, embedding", "[index]") {
  NoGrad off;
  Tensor x = range({3, 4});
  REQUIRE(values(x.index_select(1, of({3, 0}))) == L{3, 0, 7, 4, 11, 8});
  REQUIRE(values(x.t().index_select(1, of({2}))) == L{8, 9, 10, 11});
  REQUIRE(values(x.gather(1, of({3, 0, 1}).view({3, 1}))) == L{3, 4, 9});
  REQUIRE(values(x.gather(0, of({2, 0, 1, 2}).view({1, 4}))) == L{8, 1, 6, 11});
  REQUIRE(values(zeros({3}, DType::int64).scatter_add(0, of({2, 2, 0}), of({1, 2, 3}))) == L{3, 0, 3});
  REQUIRE(values(zeros({2, 3}, DType::int64).scatter_add(0, of({1, 0, 1, 1, 1, 1}).view({2, 3}), range({2, 3}))) ==
          L{0, 1, 0, 3, 4, 7});
  REQUIRE(values(embedding(x, of({2, 0, 2, 1}).view({2, 2})).select(0, 0)) == L{8, 9, 10, 11, 0, 1, 2, 3});
  REQUIRE(cause_of([&] { (void)x.index_select(0, of({-1})); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)x.gather(1, of({4}).view({1, 1})); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.gather(1, of({0})); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)embedding(x, of({3})); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)embedding(x, of({0}, DType::float32)); }) == Cause::type);
}

TEST_CASE("cat and stack", "[index]") {
  NoGrad off;
  Tensor a = range({2, 2}), b = range({2, 1}).to(DType::float32);
  Tensor c = cat({a, b}, 1);
  REQUIRE(c.dtype() == DType::float32);
  REQUIRE(values(c) == L{0, 1, 0, 2, 3, 1});
  REQUIRE(values(cat({zeros({0}), a.t()})) == L{0, 2, 1, 3});
  REQUIRE(values(stack({of({1, 2}), of({3, 4})}, -1)) == L{1, 3, 2, 4});
  REQUIRE(cause_of([&] { (void)cat({}); }) == Cause::value);
  REQUIRE(cause_of([&] { (void)cat({a, of({1})}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)cat({a, range({3, 3})}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)cat({zeros({})}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)stack({of({1}), of({1, 2})}); }) == Cause::runtime);
}
