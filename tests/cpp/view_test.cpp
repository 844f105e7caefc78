// View ops: geometry, aliasing, and the errors of bad arguments.
#include <vesta/core/autograd_port.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>

#include <catch2/catch.hpp>

#include <vector>

#include "support.h"

using namespace vesta;
using namespace vesta::test;

TEST_CASE("view shares memory and infers one size", "[view]") {
  Tensor x = range({4, 3});
  Tensor v = x.view({2, -1});
  REQUIRE(list(v.sizes()) == L{2, 6});
  v.fill_(7);
  REQUIRE(values(x) == L(12, 7));
  REQUIRE(cause_of([&] { (void)x.view({5, -1}); }) == Cause::value);
  REQUIRE(cause_of([&] { (void)x.view({-1, -1}); }) == Cause::value);
  REQUIRE(cause_of([&] { (void)x.t().view(12); }) == Cause::runtime);
  REQUIRE(list(x.t().reshape(12).sizes()) == L{12});
  REQUIRE(list(x.t().view({3, 2, 2}).strides()) == L{1, 6, 3});
  REQUIRE(list(range({2, 0}).view({0, 5}).sizes()) == L{0, 5});
}

TEST_CASE("permutations", "[view]") {
  Tensor x = range({2, 3, 4});
  REQUIRE(list(x.permute({2, 0, -2}).sizes()) == L{4, 2, 3});
  REQUIRE(list(x.permute({2, 0, 1}).strides()) == L{1, 12, 4});
  REQUIRE(list(x.transpose(0, -1).sizes()) == L{4, 3, 2});
  REQUIRE(values(range({2, 2}).t()) == L{0, 2, 1, 3});
  REQUIRE(list(x.mT().sizes()) == L{2, 4, 3});
  REQUIRE(cause_of([&] { (void)x.permute({0, 1}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.permute({0, 1, 1}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.transpose(0, 3); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)x.t(); }) == Cause::runtime);
}

TEST_CASE("expand, squeeze, unsqueeze", "[view]") {
  Tensor x = range({3, 1});
  Tensor e = x.expand({2, -1, 4});
  REQUIRE(list(e.sizes()) == L{2, 3, 4});
  REQUIRE(list(e.strides()) == L{0, 1, 0});
  REQUIRE(cause_of([&] { (void)x.expand({4, 1}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.expand(3); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.expand({-1, 3, 1}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { e.copy_(e.clone()); }) == Cause::runtime);
  Tensor y = range({1, 3, 1, 2});
  REQUIRE(list(y.squeeze().sizes()) == L{3, 2});
  REQUIRE(list(y.squeeze(0).sizes()) == L{3, 1, 2});
  REQUIRE(list(y.squeeze(1).sizes()) == L{1, 3, 1, 2});
  REQUIRE(list(y.squeeze({0, 2}).sizes()) == L{3, 2});
  REQUIRE(list(y.unsqueeze(-1).sizes()) == L{1, 3, 1, 2, 1});
  REQUIRE(list(y.unsqueeze(1).strides()) == L{6, 6, 2, 2, 1});
  REQUIRE(cause_of([&] { (void)y.unsqueeze(5); }) == Cause::index);
}

TEST_CASE("select and slice", "[view]") {
  Tensor x = range({4, 3});
  REQUIRE(values(x.select(0, -1)) == L{9, 10, 11});
  REQUIRE(values(x.select(1, 1)) == L{1, 4, 7, 10});
  REQUIRE(cause_of([&] { (void)x.select(0, 4); }) == Cause::index);
  REQUIRE(cause_of([&] { (void)x.select(0, 0).select(0, 0).select(0, 0); }) == Cause::index);
  REQUIRE(values(x.slice(0, 1, 100, 2)) == L{3, 4, 5, 9, 10, 11});
  REQUIRE(values(x.slice(1, -2, std::nullopt)) == L{1, 2, 4, 5, 7, 8, 10, 11});
  REQUIRE(x.slice(0, 3, 1).numel() == 0);
  REQUIRE(x.slice(0, INT64_MIN, INT64_MAX, INT64_MAX).numel() == 3);
  REQUIRE(cause_of([&] { (void)x.slice(0, 0, 4, 0); }) == Cause::value);
  REQUIRE(cause_of([&] { (void)x.slice(0, 0, 4, -1); }) == Cause::value);
  REQUIRE(values(x.narrow(0, -2, 1)) == L{6, 7, 8});
  REQUIRE(cause_of([&] { (void)x.narrow(0, 2, 3); }) == Cause::runtime);
}

TEST_CASE("pieces", "[view]") {
  Tensor x = range({5, 2});
  REQUIRE(x.unbind(1).size() == 2);
  REQUIRE(x.split(2).size() == 3);
  REQUIRE(list(x.split(2)[2].sizes()) == L{1, 2});
  REQUIRE(list(x.split({1, 4})[1].sizes()) == L{4, 2});
  REQUIRE(cause_of([&] { (void)x.split({1, 3}); }) == Cause::runtime);
  REQUIRE(x.chunk(3).size() == 3);
  REQUIRE(x.chunk(4).size() == 3);
  REQUIRE(cause_of([&] { (void)x.chunk(0); }) == Cause::runtime);
}

TEST_CASE("diagonals and strided views", "[view]") {
  Tensor x = range({3, 4});
  REQUIRE(values(x.diagonal()) == L{0, 5, 10});
  REQUIRE(values(x.diagonal(2)) == L{2, 7});
  REQUIRE(values(x.diagonal(-1)) == L{4, 9});
  REQUIRE(x.diagonal(INT64_MAX).numel() == 0);
  REQUIRE(x.diagonal(INT64_MIN).numel() == 0);
  REQUIRE(list(range({2, 3, 3}).diagonal(0, 1, 2).sizes()) == L{2, 3});
  REQUIRE(cause_of([&] { (void)x.diagonal(0, 1, -1); }) == Cause::runtime);
  REQUIRE(values(x.as_strided({2, 2}, {1, 2}, 3)) == L{3, 5, 4, 6});
  REQUIRE(cause_of([&] { (void)x.as_strided({2, 2}, {1, 2}, 9); }) == Cause::value);
  REQUIRE(cause_of([&] { (void)x.as_strided({2}, {-1}, 3); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.as_strided({2}, {1, 1}); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)x.as_strided({INT64_MAX}, {INT64_MAX}); }) == Cause::value);
}

TEST_CASE("a tensor without dimensions has no size", "[view]") {
  const Tensor x = full({}, 3);
  for (int64_t dim : {0, -1, 1}) {
    REQUIRE(cause_of([&] { (void)x.size(dim); }) == Cause::index);
    REQUIRE(cause_of([&] { (void)x.stride(dim); }) == Cause::index);
  }
}

TEST_CASE("a missing tensor is a clear error", "[view]") {
  REQUIRE(cause_of([&] { (void)Tensor().view(3); }) == Cause::type);
  REQUIRE(cause_of([&] { (void)Tensor().reshape(3); }) == Cause::type);
}
