// Printing: the texts are PyTorch's for the same values.
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/print.h>

#include <catch2/catch.hpp>

#include <cmath>
#include <sstream>

#include "support.h"

using namespace vesta;
using namespace vesta::test;

TEST_CASE("one format for all elements", "[print]") {
  REQUIRE(repr(floats({1, 2.5, -3})) == "tensor([ 1.0000,  2.5000, -3.0000])");
  REQUIRE(repr(floats({1, 2, 30})) == "tensor([ 1.,  2., 30.])");
  REQUIRE(repr(floats({1e-5, 1})) == "tensor([1.0000e-05, 1.0000e+00])");
  REQUIRE(repr(floats({1, NAN, INFINITY})) == "tensor([1., nan, inf])");
  REQUIRE(repr(floats({0, 0})) == "tensor([0., 0.])");
  REQUIRE(repr(floats({1, 0}, DType::bool_)) == "tensor([ True, False])");
  REQUIRE(repr(floats({1, -20}, DType::int64)) == "tensor([  1, -20])");
  REQUIRE(repr(full({}, 1.5)) == "tensor(1.5000)");
  REQUIRE(repr(full({2}, complex128(1, -2.5))) == "tensor([1.-2.5000j, 1.-2.5000j])");
}

TEST_CASE("what the values do not tell is added", "[print]") {
  REQUIRE(repr(floats({1}, DType::float64)) == "tensor([1.], dtype=vesta.float64)");
  REQUIRE(repr(floats({1}, DType::int32)) == "tensor([1], dtype=vesta.int32)");
  REQUIRE(repr(empty({0})) == "tensor([])");
  REQUIRE(repr(empty({0, 3})) == "tensor([], size=(0, 3))");
  REQUIRE(repr(empty({0}, DType::int64)) == "tensor([], dtype=vesta.int64)");
  REQUIRE(repr(floats({1}), "grad_fn=<AddBackward0>") == "tensor([1.], grad_fn=<AddBackward0>)");
  REQUIRE(repr(floats({1}), "", "Parameter(") == "Parameter([1.])");
  REQUIRE(repr(Tensor()) == "None");
}

TEST_CASE("lines and summaries", "[print]") {
  NoGrad off;
  std::ostringstream s;
  s << arange(6).view({2, 3});
  REQUIRE(s.str() == "tensor([[0, 1, 2],\n        [3, 4, 5]])");
  REQUIRE(repr(arange(2000)) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  REQUIRE(repr(zeros({1, 2, 1}, DType::int64)) == "tensor([[[0],\n         [0]]])");
  std::string wide = repr(zeros({40}));
  REQUIRE(wide.find(",\n        0., 0.") != std::string::npos);
  REQUIRE(repr(zeros({50, 50})).find("...,\n") != std::string::npos);
}
