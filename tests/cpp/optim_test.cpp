// Optimizers in C++: groups, state dicts by number and by name, an optimizer of one's own, schedules, clipping. Steps
// of the library's own are held against Python's in tests/python/test_optimizer_parity.py.
#include <vesta/nn/layers/list.h>
#include <vesta/nn/optim/optim.h>
#include <vesta/nn/optim/scheduler.h>
#include <vesta/nn/utils/clip_grad.h>

#include <catch2/catch.hpp>

#include <cmath>

#include <vesta/core/ops/from_data.h>
#include <vesta/core/random.h>
#include <vesta/core/ops/ops.h>

namespace {

using namespace vesta;
using Catch::Matchers::Contains;

Tensor leaf(const TensorData& data) {
  Tensor t = tensor(data);
  t.set_requires_grad();
  return t;
}
void give(const Tensor& p, double grad) { p.set_grad(full_like(p.detach(), grad)); }

struct SignSGDOptions {
  double lr = 1e-3;
  VESTA_FIELDS(lr)
};
/// An optimizer of a user: steps along the sign of a running sum of gradients.
struct SignSGD : optim::OptimizerOf<SignSGD, SignSGDOptions> {
  using OptimizerOf::OptimizerOf;
  void update(const Tensor& p, const Tensor& grad, optim::State& state, const SignSGDOptions& o) {
    p.sub_(sign(state.zeros("total", p).add_(grad)), o.lr);
  }
};

}  // namespace

TEST_CASE("an optimizer of one's own has groups, states and schedules", "[optim]") {
  Tensor a = leaf({1.0, 2.0}), b = leaf({1.0});
  SignSGD optimizer({{.params = {a}, .options = {.lr = 0.5}}, {.params = {b}, .options = {.lr = 0.25}}});
  optim::ExponentialLR schedule(optimizer, 0.5);
  give(a, 3), give(b, -3);
  optimizer.step();
  schedule.step();
  optimizer.step();
  CHECK(equal(a, tensor({0.25, 1.25})));
  CHECK(equal(b, tensor({1.375})));
  CHECK(optimizer.num_groups() == 2);
  CHECK(optimizer.lr(1) == 0.125);
  optimizer.options(1).lr = 2;
  CHECK(optimizer.lr(1) == 2);
  CHECK_THROWS_WITH(optimizer.options(2), Contains("group 2 is out of range"));

  const nn::StateDict state = optimizer.state_dict();
  CHECK(state.size() == 6);
  CHECK(state[0].first == "state.0.total");
  CHECK(state[3].first == "param_groups.0.initial_lr");
  CHECK(state[4].first == "param_groups.1.lr");
  SignSGD other({a, b}, {.lr = 9});
  CHECK_THROWS_WITH(other.load_state_dict(state), Contains("param_groups.1.lr"));
  CHECK(other.state_dict().size() == 1);
  Tensor c = leaf({5.0});
  other.add_param_group({.params = {c}, .options = {.lr = 1}});
  other.load_state_dict(state);
  CHECK(other.lr(0) == 0.25);
  CHECK(equal(other.state_dict()[1].second, tensor({-6.0})));
  CHECK_THROWS_WITH(other.add_param_group({.params = {a}}), Contains("more than once"));
  CHECK_THROWS_WITH(SignSGD(std::vector<SignSGD::ParamGroup>()), Contains("empty parameter list"));
  CHECK(other.parameters().size() == 3);
}

TEST_CASE("a state dict by names does not depend on the order of the parameters", "[optim]") {
  manual_seed(0);
  nn::Linear net(2, 3);
  optim::Adam first(net.named_parameters(), {.lr = 0.1});
  for (const Tensor& p : net.parameters()) give(p, 1);
  first.step();
  nn::Module::Named turned = net.named_parameters();
  std::swap(turned[0], turned[1]);
  optim::Adam second(turned, {.lr = 0.5});
  second.load_state_dict(first.state_dict());
  CHECK(second.lr() == 0.1);
  for (const auto& [name, t] : second.state_dict()) {
    if (name == "state.weight.exp_avg") CHECK(std::ranges::equal(t.sizes(), net.weight.sizes()));
  }
  CHECK(first.state_dict()[0].first.starts_with("state.weight."));
}

namespace {
struct CountedOptions {
  double lr = 1;
  int every = 2;
  bool on = true;
  VESTA_FIELDS(lr, every, on)
};
struct Counted : optim::OptimizerOf<Counted, CountedOptions> {
  using OptimizerOf::OptimizerOf;
  static void check(const CountedOptions& o) { VESTA_CHECK(o.every > 0, value, "Counted: every"); }
  void update(const Tensor& p, const Tensor& grad, optim::State& state, const CountedOptions& o) {
    Tensor& seen = state["seen"];
    const Tensor sum = state.zeros("sum", p);  // the reference to "seen" stays valid
    if (!seen.defined()) seen = zeros({});
    seen.add_(1);
    sum.add_(grad);
    if (int64_t(seen.item<float>()) % o.every == 0) p.sub_(sum, o.lr);
  }
};
}  // namespace

TEST_CASE("a state dict is loaded as a whole or not at all", "[optim]") {
  Tensor p = leaf({1.0, 2.0});
  Counted optimizer({p}, {.every = 3});
  give(p, 1);
  optimizer.step();
  const nn::StateDict good = optimizer.state_dict();
  Counted other({p});
  other.load_state_dict(good);
  CHECK(other.options().every == 3);
  const auto refused = [&](const std::string& key, const Tensor& value, const char* says) {
    nn::StateDict bad = good;
    for (auto& [name, t] : bad) {
      if (name == key) t = value;
    }
    Counted fresh({p}, {.lr = 7});
    CHECK_THROWS_WITH(fresh.load_state_dict(bad), Contains(says));
    CHECK(fresh.lr() == 7);
    CHECK(fresh.options().every == 2);
    CHECK(fresh.state_dict().size() == 3);
  };
  refused("param_groups.0.every", tensor(0), "Counted: every");
  refused("param_groups.0.every", tensor({1, 2}), "expected a number (param_groups.0.every)");
  refused("state.0.sum", tensor({1.0}), "the parameter's shape");
  refused("state.0.sum", Tensor(), "undefined");
  nn::StateDict part = good;
  std::erase_if(part, [](const auto& e) { return e.first == "param_groups.0.on"; });
  CHECK_THROWS_WITH(other.load_state_dict(part), Contains("got no 'param_groups.0.on'"));
  CHECK_THROWS_WITH(optim::State()["a.b"], Contains("without dots"));
}

TEST_CASE("names of parameters are their own", "[optim]") {
  Tensor a = leaf({1.0}), b = leaf({2.0});
  const nn::Module::Named twice{{"w", a}, {"w", b}};
  CHECK_THROWS_WITH(optim::SGD(twice, {.lr = 1}), Contains("'w' twice"));
}

TEST_CASE("a schedule continues over an optimizer that was loaded", "[optim]") {
  Tensor p = leaf({1.0}), q = leaf({1.0});
  optim::SGD first({p}, {.lr = 0.8});
  optim::ExponentialLR before(first, 0.5);
  before.step(), before.step();
  optim::SGD second({p}, {.lr = 3});
  second.load_state_dict(first.state_dict());
  CHECK(second.lr() == Approx(0.2));
  optim::ExponentialLR after(second, 0.5);
  after.set_epoch(before.epoch());
  CHECK(second.lr() == Approx(0.2));
  second.add_param_group({.params = {q}, .options = {.lr = 8}});
  after.step();
  CHECK(after.last_lr() == std::vector<double>{0.1, 1});
}

TEST_CASE("a step with a closure computes the loss", "[optim]") {
  Tensor p = leaf({2.0});
  optim::SGD sgd({p}, {.lr = 0.25});
  const Tensor loss = sgd.step([&] {
    sgd.zero_grad();
    Tensor l = (p * p).sum();
    l.backward();
    return l;
  });
  CHECK(loss.item<float>() == 4);
  CHECK(p.item<float>() == 1);
  CHECK(optim::AdamW({p}).options().weight_decay == 1e-2);
  CHECK_THROWS_WITH(optim::AdamW({p}, {.beta2 = 1}), Contains("AdamW: Invalid beta parameter at index 1"));
  CHECK_THROWS_WITH(optim::Rprop({p}, {.etaplus = 1}), Contains("Rprop: Invalid eta values"));
}

TEST_CASE("schedules", "[optim]") {
  Tensor p = leaf({1.0});
  const auto rates = [&](auto make, int epochs) {
    optim::SGD sgd({p}, {.lr = 1});
    auto schedule = make(sgd);
    std::vector<double> r{sgd.lr()};
    for (int i = 1; i < epochs; ++i) {
      schedule->step();
      r.push_back(std::round(sgd.lr() * 1e6) / 1e6);
    }
    return r;
  };
  using Rates = std::vector<double>;
  CHECK(rates([](auto& o) { return std::make_unique<optim::StepLR>(o, 2, 0.1); }, 5) == Rates{1, 1, 0.1, 0.1, 0.01});
  CHECK(rates([](auto& o) { return std::make_unique<optim::MultiStepLR>(o, std::vector<int64_t>{1, 3}, 0.5); }, 5) ==
        Rates{1, 0.5, 0.5, 0.25, 0.25});
  CHECK(rates([](auto& o) { return std::make_unique<optim::LinearLR>(o, 0.5, 1, 2); }, 4) == Rates{0.5, 0.75, 1, 1});
  CHECK(rates([](auto& o) { return std::make_unique<optim::CosineAnnealingLR>(o, 4, 0.2); }, 5) ==
        Rates{1, 0.882843, 0.6, 0.317157, 0.2});
  CHECK(
      rates([](auto& o) { return std::make_unique<optim::LambdaLR>(o, [](int64_t e) { return 1.0 / double(e + 1); }); },
            2) == Rates{1, 0.5});

  optim::SGD sgd({p}, {.lr = 1});
  optim::ReduceLROnPlateau plateau(sgd, {.patience = 1});
  for (double metric : {3.0, 2.0, 2.0, 2.0}) plateau.step(metric);
  CHECK(sgd.lr() == Approx(0.1));
  CHECK(plateau.best() == 2);
  CHECK_THROWS_WITH(optim::StepLR(sgd, 0), Contains("expected step_size > 0"));
  CHECK_THROWS_WITH(optim::ReduceLROnPlateau(sgd, {.factor = 1}), Contains("Factor should be < 1.0"));
}

TEST_CASE("clipping of gradients", "[optim]") {
  Tensor a = leaf({0.0, 0.0}), b = leaf({0.0}), without = leaf({0.0});
  a.set_grad(tensor({3.0, 0.0})), b.set_grad(tensor({4.0}));
  CHECK(nn::utils::clip_grad_norm_({a, b, without}, 1).item<float>() == 5);
  CHECK(a.grad()[0].item<float>() == Approx(0.6));
  CHECK(nn::utils::get_grad_norm({a, b}, std::numeric_limits<double>::infinity()).item<float>() == Approx(0.8));
  nn::utils::clip_grad_value_({a, b}, 0.5);
  CHECK(b.grad().item<float>() == 0.5);
  b.set_grad(tensor({NAN}));
  CHECK_THROWS_WITH(nn::utils::clip_grad_norm_({b}, 1, 2, true), Contains("is non-finite"));
  CHECK(nn::utils::clip_grad_norm_({without}, 1).item<float>() == 0);
  CHECK_THROWS_WITH(nn::utils::clip_grad_norm_({Tensor()}, 1), Contains("got an undefined tensor"));
}
