// Copies, casts, fills and factories: values, strides, dtypes, and what they refuse.
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/ops.h>

#include <catch2/catch.hpp>

#include <vector>

#include "support.h"

using namespace vesta;
using namespace vesta::test;

TEST_CASE("transposed copies equal the definition for every item size and odd shapes", "[copy]") {
  NoGrad off;
  for (DType d : {DType::uint8, DType::float16, DType::float32, DType::int64, DType::complex128}) {
    for (auto [rows, columns] : {std::pair{70, 130}, {8, 8}, {33, 257}, {1, 64}, {100, 7}, {5000, 8}, {9, 3000}}) {
      Tensor x = arange(int64_t(rows) * columns).remainder(251).to(d).view({rows, columns});
      Tensor y = x.t().contiguous();
      REQUIRE(y.is_contiguous());
      L a = values(x), b = values(y);
      bool equal = true;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) equal = equal && a[size_t(i * columns + j)] == b[size_t(j * rows + i)];
      }
      REQUIRE(equal);
    }
  }
}

TEST_CASE("transposed copies that no cache holds equal the definition", "[copy]") {
  NoGrad off;
  for (auto [rows, columns] : {std::pair{3001, 3203}, {70001, 129}, {4096, 2304}}) {  // more than 32 MiB
    const Tensor x = arange(int64_t(rows) * columns, DType::int32).view({rows, columns});
    const Tensor y = x.t().contiguous();
    const int32_t* const p = y.data_ptr<int32_t>();
    bool equal = true;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r) equal = equal && p[c * rows + r] == int32_t(r * columns + c);
    }
    REQUIRE(equal);
  }
}

TEST_CASE("batches of transposed matrices", "[copy]") {
  NoGrad off;
  Tensor x = arange(3 * 40 * 50).view({3, 40, 50});
  Tensor y = x.transpose(1, 2).contiguous();
  Tensor z = x.permute({2, 1, 0}).contiguous();
  bool equal = true;
  const int64_t *p = x.data_ptr<int64_t>(), *q = y.data_ptr<int64_t>(), *r = z.data_ptr<int64_t>();
  for (int b = 0; b < 3; ++b) {
    for (int i = 0; i < 40; ++i) {
      for (int j = 0; j < 50; ++j) {
        int64_t v = p[(b * 40 + i) * 50 + j];
        equal = equal && q[(b * 50 + j) * 40 + i] == v && r[(j * 40 + i) * 3 + b] == v;
      }
    }
  }
  REQUIRE(equal);
}

TEST_CASE("clone keeps dense strides and makes holes go away", "[copy]") {
  NoGrad off;
  Tensor x = arange(24).view({4, 6});
  REQUIRE(list(x.t().clone().strides()) == L{1, 6});
  REQUIRE(list(x.slice(1, 0, 6, 2).clone().strides()) == L{3, 1});
  REQUIRE(list(x.t().clone("contiguous_format").strides()) == L{4, 1});
  REQUIRE(cause_of([&] { (void)x.clone("blocked"); }) == Cause::type);
  REQUIRE(list(x.t().to(DType::float32).strides()) == L{1, 6});
  REQUIRE(x.contiguous().is_same(x));
  REQUIRE(x.clone().version() == 0);
}

TEST_CASE("copy_ converts, broadcasts and survives overlap", "[copy]") {
  NoGrad off;
  Tensor x = arange(6).to(DType::float32).view({2, 3});
  REQUIRE(values(zeros({2, 3}, DType::int16).copy_(x)) == L{0, 1, 2, 3, 4, 5});
  REQUIRE(values(zeros({2, 2, 3}).copy_(x)) == L{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  REQUIRE(cause_of([&] { zeros({3}).copy_(x); }) == Cause::value);
  REQUIRE(cause_of([&] { zeros({3}).copy_(Tensor()); }) == Cause::type);
  Tensor y = arange(8);
  uint32_t before = y.version();
  y.slice(0, 1).copy_(y.slice(0, 0, 7));
  REQUIRE(values(y) == L{0, 0, 1, 2, 3, 4, 5, 6});
  REQUIRE(y.version() > before);
}

TEST_CASE("fill_ takes any layout and refuses what does not fit", "[copy]") {
  NoGrad off;
  Tensor x = zeros({300, 300}, DType::int8);
  x.t().fill_(3);
  REQUIRE(x.sum().item<int64_t>() == 270000);
  x.slice(1, 0, 300, 3).fill_(-1);
  REQUIRE(x.sum().item<int64_t>() == 300 * (200 * 3 - 100));
  REQUIRE(cause_of([&] { x.fill_(200); }) == Cause::value);
  x.expand({2, 300, 300}).zero_();
  REQUIRE(x.sum().item<int64_t>() == 0);
  REQUIRE(cause_of([&] { x.expand({2, 300, 300}).copy_(x); }) == Cause::runtime);
  REQUIRE(values(zeros({3}, DType::int64).fill_(2.9)) == L{2, 2, 2});
  Tensor u = arange(3).to(DType::uint8);
  REQUIRE(values(u.clamp(wrapped(-1), wrapped(1))) == L{0, 1, 1});
  REQUIRE(cause_of([&] { (void)u.clamp({}, wrapped(-1)); }) == Cause::runtime);
}

TEST_CASE("dtypes and values of factories", "[copy]") {
  NoGrad off;
  REQUIRE(full({2}, true).dtype() == DType::bool_);
  REQUIRE(full({2}, 3).dtype() == DType::int64);
  REQUIRE(full({2}, 3.5).dtype() == DType::float32);
  REQUIRE(full({2}, complex128(1, 2)).dtype() == DType::complex64);
  REQUIRE(zeros({2}).dtype() == DType::float32);
  REQUIRE(values(eye(2, 3)) == L{1, 0, 0, 0, 1, 0});
  REQUIRE(values(eye(3, 2, DType::int32)) == L{1, 0, 0, 1, 0, 0});
  REQUIRE(values(arange(2, 11, 3)) == L{2, 5, 8});
  REQUIRE(values(arange(5, 0, -2)) == L{5, 3, 1});
  REQUIRE(arange(0, 1, 0.25).numel() == 4);
  REQUIRE(arange(int64_t(1) << 62, (int64_t(1) << 62) + 3).numel() == 3);
  REQUIRE(linspace(0, 1, 5).to(DType::float64).mul(4).to(DType::int64).sum().item<int64_t>() == 10);
  REQUIRE(linspace(3, 4, 1).item<float>() == 3.0f);
  REQUIRE(cause_of([&] { (void)arange(0, 5, 0); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)arange(5, 0, 1); }) == Cause::runtime);
  REQUIRE(cause_of([&] { (void)zeros({-1}); }) == Cause::value);
  REQUIRE(cause_of([&] { (void)zeros({int64_t(1) << 40, int64_t(1) << 40}); }) == Cause::value);
  REQUIRE(list(zeros({4, 3}).t().new_zeros({2}).sizes()) == L{2});
  REQUIRE(list(zeros_like(zeros({4, 3}).t()).strides()) == L{1, 3});
}
