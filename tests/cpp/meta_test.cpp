// The meta device in C++: shapes, gradients and models without memory.
#include <vesta/nn/vesta.h>

#include <catch2/catch.hpp>

#include <vector>

#include "support.h"

using namespace vesta;
using namespace vesta::test;

namespace { const Device kMeta("meta"); }  // namespace

TEST_CASE("a meta tensor has a shape and no memory", "[meta]") {
  const Tensor x = empty({1'000'000, 1'000'000}, DType::float32, kMeta);
  CHECK(x.device() == kMeta);
  CHECK(x.data_ptr() == nullptr);
  CHECK(x.impl()->storage()->nbytes() == size_t(4'000'000'000'000));
  const Tensor y = matmul(x.add(1).relu(), x.transpose(0, 1)).sum(IntList{1});
  CHECK(list(y.sizes()) == std::vector<int64_t>{1'000'000});
  CHECK(str(y.device()) == "meta");
  CHECK(repr(y) == "tensor(..., device='meta', size=(1000000,))");
}

TEST_CASE("what needs values says so", "[meta]") {
  const Tensor x = empty({2}, DType::float32, kMeta);
  CHECK(message([&] { x.to(Device()); }).find("Cannot copy out of meta tensor; no data!") != std::string::npos);
  CHECK(message([&] { x.sum().item(); }).find("cannot be called on meta tensors") != std::string::npos);
  CHECK(message([&] { x.nonzero(); }).find("depends on values") != std::string::npos);
  CHECK(message([&] { x.add(ones({2})); }).find("one device") != std::string::npos);
}

TEST_CASE("a model goes to the meta device, runs, and gets memory again", "[meta]") {
  nn::Sequential model{nn::make<nn::Linear>(3, 4), nn::make<nn::ReLU>(), nn::make<nn::Linear>(4, 2)};
  model.to(kMeta);
  const Tensor y = model(empty({5, 3}, DType::float32, kMeta));
  CHECK(list(y.sizes()) == std::vector<int64_t>{5, 2});
  y.sum().backward();
  for (const Tensor& p : model.parameters()) CHECK(p.grad().device() == kMeta);
  CHECK(message([&] { model.to(Device()); }).find("to_empty()") != std::string::npos);
  nn::utils::to_empty(model, Device());
  NoGrad off;
  for (const Tensor& p : model.parameters()) {
    CHECK(!p.grad().defined());
    p.fill_(1);
  }
  CHECK(model(ones({1, 3})).sum().item<double>() == 2 * (4 * 4 + 1));
}
