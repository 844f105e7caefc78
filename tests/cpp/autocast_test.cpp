// Autocast from C++: the guard, the casts by kind of argument, gradients, the cache, and no effect while it is off.
#include <catch2/catch.hpp>
#include <thread>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/ops.h>

using namespace vesta;

namespace {

Tensor leaf(IntList size) {
  Tensor t = ones(size);
  t.set_requires_grad(true);
  return t;
}

}  // namespace

TEST_CASE("AutocastMode casts, nests and restores") {
  const Tensor x = ones({2, 2});
  REQUIRE(!autocast::active());
  {
    AutocastMode on(DeviceType::cpu);
    REQUIRE(autocast::active());
    REQUIRE(matmul(x, x).dtype() == DType::bfloat16);
    {
      AutocastMode half(DeviceType::cpu, DType::float16);
      REQUIRE(linear(x, x, ones({2})).dtype() == DType::float16);
      AutocastMode off(DeviceType::cpu, {}, false);
      REQUIRE(!autocast::active());
      REQUIRE(matmul(x, x).dtype() == DType::float32);
    }
    REQUIRE(matmul(x, x).dtype() == DType::bfloat16);
    REQUIRE(cat({x, x.to(DType::bfloat16)}).dtype() == DType::float32);
    REQUIRE(mse_loss(x.to(DType::bfloat16), x.to(DType::bfloat16)).dtype() == DType::float32);
    REQUIRE(addmm(x, x, x).dtype() == DType::bfloat16);
  }
  REQUIRE(!autocast::active());
  REQUIRE(matmul(x, x).dtype() == DType::float32);
}

TEST_CASE("AutocastMode refuses dtypes, leaves the state alone") {
  REQUIRE_THROWS_WITH(AutocastMode(DeviceType::cpu, DType::int64), Catch::Contains("expected float16, bfloat16"));
  REQUIRE_THROWS_WITH(AutocastMode(DeviceType::cpu, DType::float64), Catch::Contains("(dtype)"));
  REQUIRE(!autocast::active());
  REQUIRE(autocast::mode(DeviceType::cpu).dtype == DType::bfloat16);
}

TEST_CASE("a guard around recording does not switch autocast off") {
  const Tensor x = ones({2, 2});
  AutocastMode on(DeviceType::cpu);
  {
    NoGrad off;
    REQUIRE(matmul(x, x).dtype() == DType::bfloat16);
  }
  REQUIRE(matmul(x, x).dtype() == DType::bfloat16);
  autocast::Pause paused;
  REQUIRE(matmul(x, x).dtype() == DType::float32);
}

TEST_CASE("weights are cast once and gradients arrive in their dtype") {
  const Tensor w = leaf({3, 3}), x = ones({2, 3});
  const autocast::CacheCounts before = autocast::cache_counts();
  Tensor y;
  {
    AutocastMode on(DeviceType::cpu);
    y = matmul(matmul(x, w), w);
    REQUIRE(autocast::cache_counts().casts == before.casts + 1);
    REQUIRE(autocast::cache_counts().hits == before.hits + 1);
    REQUIRE(autocast::cache_counts().entries == 1);
  }
  REQUIRE(autocast::cache_counts().entries == 0);
  sum(y).backward();
  REQUIRE(w.grad().dtype() == DType::float32);
  REQUIRE(w.grad().sizes()[0] == 3);
}

TEST_CASE("a thread has modes of its own") {
  AutocastMode on(DeviceType::cpu, DType::float16);
  bool active = true;
  DType dtype = DType::float16;
  std::thread([&] { active = autocast::active(), dtype = autocast::mode(DeviceType::cpu).dtype; }).join();
  REQUIRE(!active);
  REQUIRE(dtype == DType::bfloat16);
}
