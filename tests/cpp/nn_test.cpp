// Modules and optimizers in C++: names, state dicts, hooks, modes, copies, printing, and steps computed by hand.
#include <vesta/nn/layers/list.h>
#include <vesta/nn/optim/optim.h>
#include <vesta/nn/python_repr.h>

#include <catch2/catch.hpp>

#include <cmath>

#include <vesta/core/ops/ops.h>

#include "support.h"

namespace {

using namespace vesta;
using Names = std::vector<std::string>;
using Catch::Matchers::Contains;
using test::doubles;
using test::floats;
using test::message;

template <class Named>
Names names(const Named& list) {
  Names r;
  for (const auto& [name, value] : list) r.push_back(name);
  return r;
}

struct Net : nn::Module {
  std::shared_ptr<nn::Linear> first = register_module("first", nn::make<nn::Linear>(3, 4));
  std::shared_ptr<nn::Sequential> rest =
      register_module("rest", std::make_shared<nn::Sequential>(std::initializer_list<std::shared_ptr<nn::Module>>{
                                  nn::make<nn::ReLU>(), nn::make<nn::Linear>(4, 2, false)}));
  Tensor scale = register_parameter("scale", ones({2}));
  Tensor count = register_buffer("count", zeros({1}));
  Tensor scratch = register_buffer("scratch", zeros({1}), false);
  Tensor forward(const Tensor& x) override { return (*rest)((*first)(x)) * scale; }
  std::string kind() const override { return "Net"; }
};

}  // namespace

TEST_CASE("A module lists what was registered under qualified names", "[nn]") {
  Net net;
  CHECK(names(net.named_parameters()) == Names{"scale", "first.weight", "first.bias", "rest.1.weight"});
  CHECK(names(net.named_parameters("net")).front() == "net.scale");
  CHECK(names(net.named_buffers()) == Names{"count", "scratch"});
  CHECK(names(net.named_modules()) == Names{"", "first", "rest", "rest.0", "rest.1"});
  CHECK(names(net.state_dict()) == Names{"scale", "count", "first.weight", "first.bias", "rest.1.weight"});
  CHECK(net.parameters()[1].is_same(net.first->weight));
  for (const Tensor& p : net.parameters()) CHECK((p.requires_grad() && p.is_leaf()));
  for (const auto& [name, t] : net.state_dict()) CHECK_FALSE(t.requires_grad());
}

TEST_CASE("A shared parameter is listed once, and a wrong name or value is refused", "[nn]") {
  nn::Module m;
  Tensor w = m.register_parameter("w", ones({2}));
  auto child = nn::make<nn::Linear>(2, 2);
  m.register_module("a", child);
  m.register_module("b", child);
  CHECK(names(m.named_parameters()) == Names{"w", "a.weight", "a.bias"});
  CHECK(m.state_dict().size() == 5);  // under both names, as in Python
  CHECK_THROWS_WITH(m.register_parameter("w", ones({2})), Contains("'w' already exists"));
  CHECK_THROWS_WITH(m.register_buffer("a", ones({2})), Contains("'a' already exists"));
  CHECK_THROWS_WITH(m.register_parameter("x.y", ones({2})), Contains("no dot"));
  CHECK_THROWS_WITH(m.register_parameter("", ones({2})), Contains("not empty"));
  CHECK_THROWS_WITH(m.register_parameter("y", w * 2), Contains("leaf"));
  CHECK_THROWS_WITH(m.register_module("c", std::shared_ptr<nn::Module>()), Contains("null"));
  CHECK(m.state_dict().size() == 5);
  m.register_parameter("absent", {});
  CHECK(m.parameters().size() == 3);
}

TEST_CASE("load_state_dict copies everything or, on an error, nothing", "[nn]") {
  Net from, to;
  to.load_state_dict(from.state_dict());
  CHECK(doubles(to.first->weight) == doubles(from.first->weight));
  CHECK_FALSE(to.first->weight.is_same(from.first->weight));

  auto before = doubles(to.scale);
  nn::StateDict state = from.state_dict();
  state[0].second = floats({5, 6});  // scale: right
  state[4].second = ones({2, 5});    // rest.1.weight: wrong shape
  std::string text = message([&] { to.load_state_dict(state); });
  CHECK_THAT(text, Contains("size mismatch for rest.1.weight") && Contains("[2, 5]") && Contains("[2, 4]"));
  CHECK(doubles(to.scale) == before);

  state = from.state_dict();
  state[0].second = floats({5, 6});
  state[1].first = "counts";
  text = message([&] { to.load_state_dict(state); });
  CHECK_THAT(text, Contains("missing key: count") && Contains("unexpected key: counts"));
  CHECK(doubles(to.scale) == before);
  to.load_state_dict(state, false);
  CHECK(doubles(to.scale) == std::vector<double>{5, 6});

  state[0].second = {};
  CHECK_THAT(message([&] { to.load_state_dict(state, false); }), Contains("undefined tensor for scale"));
}

TEST_CASE("Hooks run around forward, may replace, and may remove themselves", "[nn]") {
  nn::ReLU relu;
  std::string order;
  int pre = relu.register_forward_pre_hook([&](nn::Module&, const Tensor& x) {
    order += "pre ";
    return x + 1;
  });
  int once = 0;
  once = relu.register_forward_hook([&](nn::Module& m, const Tensor& x, const Tensor& y) {
    order += x.item<float>() == 3 && y.item<float>() == 3 ? "post " : "wrong ";
    m.remove_hook(once);
    return Tensor();
  });
  CHECK(relu(floats({2})).item<float>() == 3);
  CHECK(relu(floats({2})).item<float>() == 3);
  relu.remove_hook(pre);
  CHECK(relu(floats({2})).item<float>() == 2);
  CHECK(order == "pre post pre ");
}

TEST_CASE("An error names the innermost layer", "[nn]") {
  Net net;
  std::string text = message([&] { net(ones({2, 5})); });
  CHECK_THAT(text, Contains("linear") && Contains("Linear(in_features=3, out_features=4, bias=True)"));
  CHECK(text.find("\n  in ") == text.rfind("\n  in "));
  CHECK_THROWS_WITH(nn::Module().forward(ones({1})), Contains("forward"));
}

TEST_CASE("train and eval reach every part; dropout and normalisation obey", "[nn]") {
  auto drop = nn::make<nn::Dropout>(0.5);
  auto norm = nn::make<nn::BatchNorm2d>(3);
  nn::Sequential net{norm, drop};
  CHECK((net.is_training() && drop->is_training()));
  net.eval();
  CHECK_FALSE((net.is_training() || drop->is_training() || norm->is_training()));
  Tensor x = ones({2, 3, 2, 2});
  net(x);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 0);
  CHECK(doubles((*drop)(x)) == doubles(x));
  net.train();
  net(x);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 1);
  CHECK(norm->running_mean.select(0, 0).item<float>() == Approx(0.1));
  net.apply([](nn::Module& m) { m.train(false); });
  CHECK_FALSE(net.is_training());
}

TEST_CASE("to() converts in place: parameters stay the same tensors", "[nn]") {
  Net net;
  Tensor weight = net.first->weight;
  auto before = doubles(weight);
  net(ones({1, 3})).sum().backward();
  net.to(DType::float64);
  CHECK(net.first->weight.is_same(weight));
  CHECK((weight.dtype() == DType::float64 && weight.requires_grad() && weight.is_leaf()));
  CHECK(weight.grad().dtype() == DType::float64);
  CHECK(doubles(weight) == before);
  CHECK(net(ones({1, 3}, DType::float64)).dtype() == DType::float64);
  CHECK_THROWS_WITH(net.to(DType::int64), Contains("floating point"));
  net.zero_grad();
  CHECK_FALSE(weight.grad().defined());
}

TEST_CASE("A clone is independent and keeps dtype, mode, flags and ties", "[nn]") {
  auto tied = nn::make<nn::Linear>(2, 2);
  nn::Sequential net{tied, nn::make<nn::Tanh>(), tied, nn::make<nn::BatchNorm2d>(2)};
  net.to(DType::float64);
  net.eval();
  tied->bias.set_requires_grad(false);
  auto copy = std::dynamic_pointer_cast<nn::Sequential>(net.clone());
  REQUIRE(copy);
  CHECK(copy->repr() == net.repr());
  CHECK((&(*copy)[0] == &(*copy)[2] && &(*copy)[0] != tied.get()));
  CHECK_FALSE((copy->is_training() || (*copy)[1].is_training()));
  auto& linear = dynamic_cast<nn::Linear&>((*copy)[0]);
  CHECK((linear.weight.dtype() == DType::float64 && linear.weight.requires_grad() && !linear.bias.requires_grad()));
  CHECK(doubles(linear.weight) == doubles(tied->weight));
  {
    NoGrad off;
    linear.weight.zero_();
  }
  CHECK(doubles(linear.weight) != doubles(tied->weight));
  CHECK_THROWS_WITH(Net().clone(), Contains("Net") && Contains("clone()"));
  CHECK(nn::CrossEntropyLoss({.weight = ones({3}), .reduction = "sum"}).clone()->state_dict().size() == 1);
}

TEST_CASE("A module prints as Python prints it", "[nn]") {
  CHECK(Net().repr() ==
        "Net(\n  (first): Linear(in_features=3, out_features=4, bias=True)\n  (rest): Sequential(\n    (0): ReLU()\n"
        "    (1): Linear(in_features=4, out_features=2, bias=False)\n  )\n)");
  CHECK(nn::BatchNorm2d({.num_features = 4, .eps = 1, .momentum = {}}).repr() ==
        "BatchNorm2d(4, eps=1.0, momentum=None, affine=True, bias=True, track_running_stats=True)");
  CHECK(nn::Dropout(0.1).repr() == "Dropout(p=0.1, inplace=False)");
  CHECK(nn::python_repr(1e-5) == "1e-05");
  CHECK(nn::python_repr(0.0001) == "0.0001");
  CHECK(nn::python_repr(1e16) == "1e+16");
  CHECK(nn::python_repr(123456789.0) == "123456789.0");
  CHECK(nn::python_repr(0.0) == "0.0");
}

TEST_CASE("Sequential indexes its parts", "[nn]") {
  nn::Sequential net{nn::make<nn::Flatten>(), nn::make<nn::Linear>(4, 2)};
  net.push_back(nn::make<nn::Identity>());
  CHECK(net.size() == 3);
  CHECK(net[1].kind() == "Linear");
  CHECK_THROWS_WITH(net[3], Contains("out of range"));
  CHECK(std::ranges::equal(net(ones({3, 2, 2})).sizes(), std::vector<int64_t>{3, 2}));
}

namespace {

/// Runs steps with the gradients 1, -2 for a parameter that starts as 1, 2; returns where it ends.
template <class O, class Options>
std::vector<double> after(Options options, int steps) {
  Tensor p = floats({1, 2}, DType::float64);
  p.set_requires_grad();
  O optimizer({p}, options);
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    (p * floats({1, -2}, DType::float64)).sum().backward();
    optimizer.step();
  }
  return doubles(p);
}

}  // namespace

TEST_CASE("Steps of the optimizers, worked out by hand", "[nn][optim]") {
  auto near = [](const std::vector<double>& got, double a, double b) {
    CHECK(got[0] == Approx(a).epsilon(1e-12));
    CHECK(got[1] == Approx(b).epsilon(1e-12));
  };
  near(after<optim::SGD>(optim::SGDOptions{.lr = 0.1}, 1), 0.9, 2.2);
  near(after<optim::SGD>(optim::SGDOptions{.lr = 0.1, .maximize = true}, 1), 1.1, 1.8);
  near(after<optim::SGD>(optim::SGDOptions{.lr = 0.1, .weight_decay = 0.5}, 1), 1 - 0.1 * 1.5, 2 - 0.1 * -1.0);
  // momentum: b1 = g, b2 = 0.9 g + g
  near(after<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9}, 2), 1 - 0.1 * 2.9, 2 + 0.2 * 2.9);
  // Nesterov: g + 0.9 b, so 1.9 g and then g + 0.9 * 1.9 g
  near(after<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}, 2), 1 - 0.1 * (1.9 + 2.71),
       2 + 0.2 * (1.9 + 2.71));
  // Adam: bias correction makes both moments those of a constant gradient, so each step is lr * g / (|g| + eps).
  near(after<optim::Adam>(optim::AdamOptions{.lr = 0.1, .eps = 0.5}, 2), 1 - 0.2 / 1.5, 2 + 0.2 * 2 / 2.5);
  // AdamW: p *= 1 - lr * decay before the step; plain Adam adds decay * p to the gradient instead.
  near(after<optim::AdamW>(optim::AdamWOptions{.lr = 0.1, .eps = 0, .weight_decay = 0.5}, 1), 0.95 - 0.1, 1.9 + 0.1);
  near(after<optim::Adam>(optim::AdamOptions{.lr = 0.1, .eps = 1, .weight_decay = 0.5}, 1), 1 - 0.1 * 1.5 / 2.5,
       2 + 0.1 * 1 / 2);
  // RMSprop: v = g^2 / 4 after the first step, so g / sqrt(v) is 2 * sign(g); centered, v - (g / 4)^2 = 3 g^2 / 16.
  near(after<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.1, .alpha = 0.75, .eps = 0}, 1), 1 - 0.2, 2 + 0.2);
  near(after<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.1, .alpha = 0.75, .eps = 0, .centered = true}, 1),
       1 - 0.4 / std::sqrt(3.0), 2 + 0.4 / std::sqrt(3.0));
}

TEST_CASE("An optimizer leaves parameters without gradient alone and checks its arguments", "[nn][optim]") {
  Tensor a = floats({1}), b = floats({1});
  a.set_requires_grad(), b.set_requires_grad();
  optim::SGD sgd({a, b}, {.lr = 1, .momentum = 0.5});
  a.sum().backward();
  sgd.step();
  CHECK(doubles(a) == std::vector<double>{0});
  CHECK(doubles(b) == std::vector<double>{1});
  b.sum().backward();
  sgd.step();  // a continues with 0.5 + 1, b starts with 1
  CHECK(doubles(a) == std::vector<double>{-1.5});
  CHECK(doubles(b) == std::vector<double>{0});
  sgd.zero_grad(false);
  CHECK(doubles(a.grad()) == std::vector<double>{0});
  CHECK(a.requires_grad());

  CHECK_THROWS_WITH(optim::SGD({}, {}), Contains("empty parameter list"));
  CHECK_THROWS_WITH(optim::SGD({a, a}, {}), Contains("more than once"));
  CHECK_THROWS_WITH(optim::SGD({a * 2}, {}), Contains("non-leaf"));
  CHECK_THROWS_WITH(optim::SGD({a}, {.lr = -1}), Contains("learning rate"));
  CHECK_THROWS_WITH(optim::SGD({a}, {.nesterov = true}), Contains("Nesterov"));
  CHECK_THROWS_WITH(optim::Adam({a}, {.beta1 = 1}), Contains("beta parameter at index 0"));
  CHECK_THROWS_WITH(optim::RMSprop({a}, {.alpha = -1}), Contains("alpha"));
}
