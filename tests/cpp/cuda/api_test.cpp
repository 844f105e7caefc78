// vesta::cuda as a native program sees it: only libvesta.so is linked; the emulated device stands in for a GPU.
#include <vesta/cuda/api.h>

#include <catch2/catch.hpp>
#include <string>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/ops.h>

#include "emulated_device.h"

using namespace vesta;

TEST_CASE("A native program computes on a CUDA device", "[cuda]") {
  if (!have_device()) {
    CHECK_THROWS_AS(zeros({2}, DType::float32, Device("cuda")), Error);
    return;
  }
  CHECK(cuda::device_count() >= 1);
  CHECK_FALSE(cuda::api().device_info(0).name.empty());
  Tensor x = arange(0.0, 6.0, 1.0, DType::float32).view({2, 3});
  Tensor there = x.to(Device("cuda"));
  CHECK(there.device() == Device(DeviceType::cuda, 0));
  there.set_requires_grad(true);
  Tensor loss = (there * there).sum();
  loss.backward();
  CHECK(loss.item<double>() == 55.0);
  CHECK(eq(there.grad().to(Device()), x * 2).all().item<bool>());

  const uint32_t side = cuda::api().stream_from_pool(0, 0);
  cuda::api().set_stream(0, side);
  Tensor y = there.detach() + 1;
  cuda::api().set_stream(0, 0);
  cuda::api().stream_wait_stream(0, 0, side);
  record_stream(y, 0);
  CHECK(y.sum().item<double>() == 21.0);
  cuda::synchronize();
  cuda::empty_cache();
}

TEST_CASE("What a kernel finds wrong is raised at the next wait, once", "[cuda]") {
  if (!have_device()) return;
  Tensor x = arange(0.0, 4.0, 1.0, DType::float32).to(Device("cuda"));
  Tensor bad = full({1}, int64_t(9), DType::int64).to(Device("cuda"));
  Tensor picked = index_select(x, 0, bad);
  CHECK_THROWS_WITH(cuda::synchronize(), Catch::Matchers::Contains("index 9 is out of bounds"));
  CHECK_NOTHROW(cuda::synchronize());
  CHECK(x.sum().item<double>() == 6.0);
}
