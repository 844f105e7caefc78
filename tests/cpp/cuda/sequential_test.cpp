// nn::Sequential on a CUDA device: a linear layer and the activation behind it run as one op unless something sees what
// lies between.
#include <catch2/catch.hpp>
#include <string>

#include <vesta/autograd/grad_meta.h>
#include <vesta/cuda/api.h>
#include <vesta/nn/vesta.h>

#include "emulated_device.h"

using namespace vesta;

namespace {

std::shared_ptr<nn::Sequential> chain(std::shared_ptr<nn::Module> activation) {
  manual_seed(3);
  auto net = nn::make<nn::Sequential>(
      std::initializer_list<std::shared_ptr<nn::Module>>{nn::make<nn::Linear>(6, 8), std::move(activation)});
  net->to(Device("cuda"));
  return net;
}

std::string last_step(const Tensor& y) { return autograd::gradient_edge(y).node->name(); }

}  // namespace

TEST_CASE("Sequential joins a linear layer and its activation on CUDA", "[cuda][nn]") {
  if (!have_device()) return;
  const Tensor x = randn({4, 6}).to(Device("cuda"));
  auto relu = chain(nn::make<nn::ReLU>()), gelu = chain(nn::make<nn::GELU>("tanh"));
  for (const auto& net : {relu, gelu}) {
    const Tensor y = (*net)(x);
    CHECK(last_step(y) == "FusedLinearBackward0");
    y.sum().backward();
    const Tensor joined = (*net)[0].as<nn::Linear>().weight.grad().clone();
    net->zero_grad();
    const int hook = (*net)[0].register_forward_hook([](nn::Module&, const Tensor&, const Tensor& out) { return out; });
    const Tensor apart = (*net)(x);
    CHECK(last_step(apart) != "FusedLinearBackward0");
    CHECK(equal(y, apart));
    apart.sum().backward();
    CHECK(equal(joined, (*net)[0].as<nn::Linear>().weight.grad()));
    (*net)[0].remove_hook(hook);
    CHECK(last_step((*net)(x)) == "FusedLinearBackward0");
  }
  CHECK(last_step((*chain(nn::make<nn::GELU>()))(x)) == "GeluErfBackward0");
  CHECK(last_step((*chain(nn::make<nn::Tanh>()))(x)) == "TanhBackward0");
  relu->to(Device());
  CHECK(last_step((*relu)(x.to(Device()))) == "ReluBackward0");
  try {
    (*gelu)(randn({4, 5}).to(Device("cuda")));
    FAIL("an input of 5 features was taken");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("in Linear(in_features=6") != std::string::npos);
  }
}

TEST_CASE("Sequential joins a convolution with a bias and relu on CUDA without gradients", "[cuda][nn]") {
  if (!have_device()) return;
  manual_seed(3);
  auto net = nn::make<nn::Sequential>(std::initializer_list<std::shared_ptr<nn::Module>>{
      nn::make<nn::Conv2d>(nn::Conv2dOptions{4, 8, 3}), nn::make<nn::ReLU>()});
  const Tensor here = randn({2, 4, 7, 6}), x = here.to(Device("cuda"));
  Tensor want;
  {
    GradMode off(false);
    want = (*net)(here);
  }
  net->to(Device("cuda"));
  const auto check = [&] { CHECK(allclose((*net)(x).to(Device()), want, 1e-5, 1e-5)); };
  CHECK(last_step((*net)(x)) == "ReluBackward0");  // recorded: apart
  GradMode off(false);
  check();
  int calls = 0;
  const int hook = (*net)[0].register_forward_hook([&](nn::Module&, const Tensor&, const Tensor& out) {
    ++calls;
    return out;
  });
  check();
  CHECK(calls == 1);
  (*net)[0].remove_hook(hook);
  try {
    (*net)(randn({2, 5, 7, 6}).to(Device("cuda")));
    FAIL("an input of 5 channels was taken");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("in Conv2d(4, 8") != std::string::npos);
  }
}
