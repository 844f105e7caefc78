// Modules of any signature: calls, hooks, containers, copies; and what the parity tests in Python cannot say.
#include <vesta/nn/layers/list.h>

#include <catch2/catch.hpp>

#include <vesta/core/ops/from_data.h>
#include <vesta/core/print.h>
#include <vesta/core/random.h>
#include <vesta/nn/functional.h>

#include "support.h"

namespace vesta {
namespace {

using Catch::Matchers::Contains;
using test::same;

/// A model of two inputs, one of them a number, with two results.
struct Scaled : nn::ModuleOf<Scaled> {
  std::shared_ptr<nn::Linear> in = register_module("in", nn::make<nn::Linear>(3, 4));
  std::shared_ptr<nn::LSTM> lstm = register_module("lstm", nn::make<nn::LSTM>(4, 2));
  std::tuple<Tensor, nn::LSTMState> forward(const Tensor& x, double by = 1, std::optional<nn::LSTMState> state = {}) {
    return (*lstm)(relu((*in)(x)) * by, state);
  }
};

struct Point {
  double x, y;
};
struct OfPoint : nn::ModuleOf<OfPoint> {
  Tensor forward(const Point& p, std::string_view word) { return full({2}, p.x * p.y + double(word.size())); }
};

struct NeedsANumber : nn::ModuleOf<NeedsANumber> {
  explicit NeedsANumber(int64_t n) : fc(register_module("fc", nn::make<nn::Linear>(n, 1))) {}
  Tensor forward(const Tensor& x) override { return (*fc)(x); }
  std::shared_ptr<nn::Linear> fc;
};

struct Nothing : nn::ModuleOf<Nothing> {};

TEST_CASE("a module of any signature is called, named and copied", "[nn]") {
  manual_seed(1);
  Scaled net;
  const Tensor x = randn({5, 2, 3});
  auto [y, state] = net(x, 2.0);
  CHECK(y.size(2) == 2);
  auto [y2, state2] = net(x, 2.0, state);
  CHECK_FALSE(same(y, y2));
  CHECK(net.kind() == "Scaled");
  CHECK_THAT(net.repr(), Contains("(lstm): LSTM(4, 2)"));
  CHECK(net.state_dict().size() == 6);

  manual_seed(7);
  const Tensor before = rand({1});
  manual_seed(7);
  const auto copy = net.clone();
  CHECK(same(before, rand({1})));  // a copy draws no random numbers
  CHECK(same(std::get<0>(copy->as<Scaled>()(x, 2.0)), y));
  copy->parameters()[0].detach().zero_();
  CHECK(same(std::get<0>(net(x, 2.0)), y));
  CHECK_THROWS_WITH(copy->as<nn::Linear>(), Contains("expected a module of class Linear, got Scaled"));
  CHECK_THROWS_WITH(NeedsANumber(3).clone(), Contains("NeedsANumber: expected a class with a clone() of its own"));
}

TEST_CASE("inputs whose types are known only at run time", "[nn]") {
  manual_seed(1);
  Scaled net;
  const Tensor x = randn({5, 2, 3});
  const nn::Values inputs{x, 2};  // a number for a number
  const nn::Value out = net.run(inputs);
  REQUIRE(out.list().size() == 2);
  CHECK(same(out.list()[0].tensor(), std::get<0>(net(x, 2.0))));
  CHECK(same(std::get<1>(out.list()[1].to<nn::LSTMState>()), std::get<1>(std::get<1>(net(x, 2.0)))));
  const nn::Values one{x};  // the rest have their defaults
  CHECK(same(net.run(one).list()[0].tensor(), std::get<0>(net(x))));
  CHECK_THROWS_WITH(net.run(nn::Values{x, "two"}), Contains("expected a number, got a text") && Contains("in Scaled("));
  CHECK_THROWS_WITH(net.run(nn::Values{}), Contains("Scaled: expected 3 inputs, got 0"));
  CHECK_THROWS_WITH(net.run(nn::Values{x, 1, nn::Value(), 3}), Contains("got 4"));
  CHECK_THROWS_WITH(nn::Linear(3, 4).run(nn::Values{1}), Contains("expected a tensor, got an integer"));
  CHECK_THROWS_WITH(Nothing()(x), Contains("missing the required forward"));
  CHECK_THROWS_WITH(Nothing().run(one), Contains("missing the required forward"));

  OfPoint points;  // a type of the user's own
  CHECK(points(Point{2, 3}, "abc")[0].item<float>() == 9);
  CHECK(points.run(nn::Values{nn::Value(Point{2, 3}), "abc"}).tensor()[0].item<float>() == 9);
  CHECK_THROWS_WITH(points.run(nn::Values{1.5, "abc"}), Contains("a value of another type"));
}

TEST_CASE("values", "[nn]") {
  const nn::Value nothing, number(3), list(std::tuple(1.5, std::string("a"), std::vector<int64_t>{1, 2}));
  CHECK_FALSE(nothing.has_value());
  CHECK_FALSE(nn::Value(Tensor()).has_value());
  CHECK_FALSE(nn::Value(std::optional<Tensor>()).has_value());
  CHECK(nothing.to<std::optional<int64_t>>() == std::nullopt);
  CHECK_FALSE(nothing.to<Tensor>().defined());
  CHECK(number.to<double>() == 3.0);
  CHECK(number.to<std::optional<int>>() == 3);
  CHECK(std::get<2>(list.to<std::tuple<double, std::string, std::vector<int64_t>>>()) == std::vector<int64_t>{1, 2});
  CHECK_THROWS_WITH(number.to<bool>(), Contains("expected a bool, got an integer"));
  CHECK_THROWS_WITH((list.to<std::pair<double, std::string>>()), Contains("another length"));
  CHECK_THROWS_WITH(number.tensor(), Contains("expected a tensor, got an integer"));
}

TEST_CASE("hooks see and replace inputs and results of any kind", "[nn]") {
  manual_seed(1);
  Scaled net;
  const Tensor x = randn({5, 2, 3});
  const Tensor twice = std::get<0>(net(x, 2.0)), thrice = std::get<0>(net(x, 3.0));
  int seen = 0;
  const int pre = net.register_forward_pre_hook([&](nn::Module&, const nn::Values& inputs) {
    ++seen;
    return std::optional(nn::Values{inputs[0], 3.0, inputs[2]});
  });
  const int post = net.register_forward_hook([&](nn::Module& m, const nn::Values& inputs, const nn::Value& output) {
    CHECK(inputs[1].to<double>() == 3.0);
    CHECK(output.list().size() == 2);
    CHECK(m.kind() == "Scaled");
    ++seen;
  });
  CHECK(same(std::get<0>(net(x, 2.0, std::nullopt)), thrice));
  CHECK(seen == 2);
  net.remove_hook(pre);
  net.remove_hook(post);
  const int replace = net.register_forward_hook([&](nn::Module&, const nn::Values&, const nn::Value& output) {
    return nn::Value(nn::Values{output.list()[0].tensor() * 0, output.list()[1]});
  });
  CHECK(std::get<0>(net(x, 2.0)).sum().item<float>() == 0);
  net.remove_hook(replace);
  CHECK(same(std::get<0>(net(x, 2.0)), twice));

  net.register_forward_hook([](nn::Module&, const Tensor&, const Tensor&) {});  // of one tensor
  CHECK_THROWS_WITH(net(x, 2.0), Contains("a hook of one tensor was called with 2 inputs"));

  nn::Linear linear(3, 2);
  int calls = 0;
  linear.register_forward_hook(
      [&](nn::Module&, const Tensor& in, const Tensor& out) { calls += in.dim() == out.dim(); });
  linear.register_forward_pre_hook(
      [](nn::Module&, const nn::Values& inputs) { return std::optional(nn::Values{inputs[0].tensor() * 2}); });
  const Tensor y = linear(ones({3}));
  CHECK(calls == 1);
  CHECK(same(y, vesta::linear(full({3}, 2.0), linear.weight, linear.bias)));
  linear.register_forward_pre_hook([](nn::Module&, const nn::Values&) { return std::optional(nn::Values{1, 2}); });
  CHECK_THROWS_WITH(linear(ones({3})), Contains("expected"));
}

TEST_CASE("containers", "[nn]") {
  manual_seed(1);
  nn::Sequential chain{nn::make<nn::Bilinear>(3, 4, 2), nn::make<nn::ReLU>()};
  const Tensor a = randn({5, 3}), b = randn({5, 4});
  CHECK(same(chain.apply_to(a, b), relu(chain.at<nn::Bilinear>(0)(a, b))));
  CHECK_THROWS_WITH(chain(a), Contains("Bilinear: expected 2 inputs, got 1"));
  nn::Sequential ends_in_lstm{nn::make<nn::Linear>(3, 4), nn::make<nn::LSTM>(4, 2)};
  auto [y, state] = ends_in_lstm.apply_to<std::tuple<Tensor, nn::LSTMState>>(randn({5, 2, 3}));
  CHECK(y.size(2) == 2);
  CHECK_THROWS_WITH(ends_in_lstm(randn({5, 2, 3})), Contains("expected a tensor, got a list of values"));
  CHECK(same(nn::Sequential()(a), a));

  nn::ModuleList list{nn::make<nn::Linear>(2, 2), nn::make<nn::Linear>(2, 2), nn::make<nn::Tanh>()};
  CHECK(list.repr() == "ModuleList(\n  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n  (2): Tanh()\n)");
  CHECK(list.clone()->state_dict().size() == 4);
  CHECK(list.at<nn::Linear>(1).options.in_features == 2);
  CHECK_THROWS_WITH(list[3], Contains("ModuleList: index 3 is out of range"));
  CHECK_THROWS_WITH(list(a), Contains("missing the required forward"));

  nn::ModuleDict dict{{"a", nn::make<nn::Linear>(2, 3)}, {"b", nn::make<nn::ReLU>()}};
  CHECK(dict.contains("a"));
  CHECK(dict.at<nn::Linear>("a").options.out_features == 3);
  CHECK(dict.clone()->state_dict()[0].first == "a.weight");
  CHECK_THROWS_WITH(dict["c"], Contains("expected the name of a module, got 'c'"));
  CHECK_THROWS_WITH(dict.insert("a", nn::make<nn::ReLU>()), Contains("already exists"));
}

TEST_CASE("convolutions take as many arguments as a caller has, and paddings by name", "[nn]") {
  const Tensor x = rand({2, 4, 9}), w = rand({6, 4, 3}), bias = rand({6});
  const Tensor y = vesta::conv1d(x, w);
  CHECK(y.sizes() == Dims{2, 6, 7});
  CHECK(same(vesta::conv1d(x, w, bias), y + bias.view({6, 1})));
  CHECK(same(vesta::conv1d(x, w, {}, 1, "valid"), y));
  CHECK(same(vesta::conv1d(x, w, {}, 1, "same"), vesta::conv1d(x, w, {}, 1, 1)));
  CHECK(same(vesta::conv2d(x.unsqueeze(2), w.unsqueeze(2), {}, 1, "same", 1, 1).squeeze(2),
             vesta::conv1d(x, w, {}, 1, "same")));
  CHECK(same(vesta::conv3d(x.view({2, 4, 1, 1, 9}), w.view({6, 4, 1, 1, 3})).view({2, 6, 7}), y));
  CHECK_THROWS_WITH(vesta::conv2d(x.unsqueeze(2), w.unsqueeze(2), {}, 2, "same"), Contains("strided"));
}

TEST_CASE("constructors take the first fields, or all of them by name", "[nn]") {
  CHECK(nn::Conv2d(3, 8, 3).repr() == "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))");
  CHECK(nn::Conv2d({.in_channels = 3, .out_channels = 8, .kernel_size = {3, 1}, .padding = "same"}).repr() ==
        "Conv2d(3, 8, kernel_size=(3, 1), stride=(1, 1), padding=same)");
  CHECK(nn::ReLU(true).repr() == "ReLU(inplace=True)");
  CHECK(nn::LayerNorm(5).repr() == "LayerNorm((5,), eps=1e-05, elementwise_affine=True, bias=True)");
  CHECK(nn::LayerNorm({.normalized_shape = {2, 3}, .bias = false}).bias.defined() == false);
  CHECK(nn::AdaptiveAvgPool2d({.output_size = {std::nullopt, 7}}).repr() == "AdaptiveAvgPool2d(output_size=(None, 7))");
  CHECK(nn::MaxPool2d(2).repr() == "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  auto [values, places] = nn::MaxPool1d(2).forward_with_indices(tensor({{1.f, 3.f, 2.f, 0.f}}));
  CHECK(places[0][1].item<int64_t>() == 2);
  CHECK_THROWS_WITH(nn::Conv2d({.in_channels = 3, .out_channels = 8, .kernel_size = 3, .padding = "some"}),
                    Contains("Invalid padding string 'some'"));
  CHECK_THROWS_WITH(nn::MSELoss("average"), Contains("MSELoss: average is not a valid value for reduction"));
  CHECK_THROWS_WITH(nn::MultiheadAttention(7, 2), Contains("embed_dim must be divisible by num_heads"));
  CHECK_THROWS_WITH(nn::LSTM(3, 0), Contains("hidden_size must be greater than zero"));
  CHECK_THROWS_WITH(nn::GroupNorm(3, 4), Contains("must be divisible by num_groups"));
  CHECK_THROWS_WITH(nn::LSTM(3, 2)(randn({4, 2, 5})), Contains("Expected 3, got 5"));
}

namespace {
struct Deeper : nn::Linear {
  using Linear::Linear;
  Tensor extra = register_buffer("extra", zeros({2}));
};
struct Chain : nn::Sequential {
  using Sequential::Sequential;
  Tensor scale = register_parameter("scale", ones({}));
};
struct Optional : nn::ModuleOf<Optional> {
  bool with = false;
  Tensor bias = register_parameter("bias", Tensor());
  Tensor forward(const Tensor& x, double by) noexcept { return x * by; }
};
struct Base {
  int value = 1;
};
struct Other {
  operator Base() const { return {5}; }
};
struct Takes : nn::ModuleOf<Takes> {
  Tensor forward(const Tensor& x, const Base& base, const std::vector<double>& by) { return x * (base.value + by[0]); }
};
}  // namespace

TEST_CASE("a copy has all that the module has, or is refused", "[nn]") {
  manual_seed(3);
  CHECK_THROWS_WITH(Deeper(2, 3).clone(), Contains("Deeper: expected a class with a clone() of its own"));
  CHECK(Deeper(2, 3).repr() == "Deeper(in_features=2, out_features=3, bias=True)");
  CHECK_THROWS_WITH(Chain().clone(), Contains("Chain: derives from Sequential"));
  nn::Sequential with_own{nn::make<nn::Linear>(2, 2)};
  with_own.register_parameter("scale", full({2}, 3.0));
  const auto copied = with_own.clone();
  REQUIRE(copied->named_parameters()[0].first == "scale");
  CHECK(same(copied->parameters()[0].detach(), full({2}, 3.0)));
  nn::Linear added(2, 3);
  added.register_buffer("more", ones({1}));
  CHECK_THROWS_WITH(added.clone(), Contains("Linear: clone() made a module with other parameters or buffers"));

  const auto shared = nn::make<nn::Linear>(2, 2);
  const auto inner = nn::make<nn::ModuleDict>();
  inner->insert("a", shared);
  nn::ModuleList outer{shared, inner,
                       nn::make<nn::Sequential>(std::initializer_list<std::shared_ptr<nn::Module>>{shared})};
  CHECK(outer.clone()->parameters().size() == 2);  // one Linear, in three places
  const auto layer = nn::make<nn::TransformerEncoderLayer>(4, 2, 8);
  nn::Sequential around{nn::make<nn::TransformerEncoder>(layer, 2)};
  CHECK(around.clone()->parameters().size() == around.parameters().size());
}

TEST_CASE("undefined inputs are refused", "[nn]") {
  nn::Linear linear(2, 3);
  nn::Bilinear bilinear(2, 2, 1);
  const char* says = "expected a tensor as input 1, got an undefined one";
  CHECK_THROWS_WITH(linear(Tensor()), Contains("Linear: expected a tensor as input 0, got an undefined one"));
  CHECK_THROWS_WITH(bilinear(ones({1, 2}), Tensor()), Contains(says));
  CHECK_THROWS_WITH(bilinear.run(nn::Values{ones({1, 2}), Tensor()}), Contains(says));
  CHECK_THROWS_WITH(nn::Sequential{nn::make<nn::Linear>(2, 3)}(Tensor()), Contains("undefined"));
  nn::MultiheadAttention attention(4, 2);
  const Tensor x = ones({3, 1, 4});
  CHECK(std::get<0>(attention(x, x, x, Tensor())).defined());  // what may be missing may be undefined
}

TEST_CASE("hooks keep their state, and the types that forward() declares", "[nn]") {
  nn::Linear linear(2, 3);
  int last = 0;
  linear.register_forward_hook([&last, n = 0](nn::Module&, const Tensor&, const Tensor&) mutable { last = ++n; });
  linear(ones({1, 2})), linear(ones({1, 2}));
  CHECK(last == 2);
  CHECK_THROWS_WITH(linear.add_forward_hook({}), Contains("Linear: expected a hook, got an empty function"));
  Optional module;
  Takes takes;
  CHECK(same(module(ones({2}), 3), full({2}, 3.0)));
  const Tensor before = takes(ones({2}), Other(), std::vector<double>{2});
  int calls = 0;
  const auto count = [&](nn::Module&, const nn::Values&) { ++calls; };
  module.register_forward_pre_hook(count), takes.register_forward_pre_hook(count);
  CHECK(same(module(ones({2}), 3), full({2}, 3.0)));
  CHECK(same(takes(ones({2}), Other(), std::vector<double>{2}), before));
  CHECK(calls == 2);
  const char* none = nullptr;
  CHECK_FALSE(nn::Value(none).has_value());
  CHECK(nn::Value("text").to<std::string>() == "text");
}

TEST_CASE("options that make no layer", "[nn]") {
  CHECK(nn::LayerNorm({4, 5}).weight.dim() == 2);
  CHECK(nn::RMSNorm({4, 5}).weight.dim() == 2);
  STATIC_REQUIRE_FALSE(std::constructible_from<nn::Linear, int>);
  STATIC_REQUIRE_FALSE(std::constructible_from<nn::Conv2d, int, int>);
  STATIC_REQUIRE(std::constructible_from<nn::Conv2d, int, int, int>);
  CHECK_THROWS_WITH(nn::Conv2d(3, 8, 0), Contains("Conv2d: expected kernel_size >= 1"));
  CHECK_THROWS_WITH(nn::Conv2d(3, -8, 1), Contains("Conv2d: expected out_channels >= 0"));
  CHECK_THROWS_WITH(nn::Conv1d(3, 8, 2, 0), Contains("Conv1d: expected stride >= 1"));
  CHECK_THROWS_WITH(nn::ConvTranspose2d(3, 8, 2)(ones({3}), std::vector<int64_t>{4, 4}),
                    Contains("ConvTranspose2d: expected 3D (unbatched) or 4D (batched) input"));
  nn::Linear real(2, 2);
  nn::StateDict state = real.state_dict();
  state[0].second = state[0].second.to(DType::complex64);
  CHECK_THROWS_WITH(real.load_state_dict(state), Contains("dtype mismatch for weight"));
  CHECK_THROWS_WITH(tensor(std::vector<int64_t>{1, 300}, DType::int8), Contains("tensor"));
  CHECK(same(tensor(std::vector<int64_t>{1, 3}, DType::float32), tensor({1.f, 3.f})));
}

TEST_CASE("a loss keeps the caller's weight apart from its copies", "[nn]") {
  Tensor weight = ones({3});
  nn::CrossEntropyLoss loss({.weight = weight});
  const auto copy = loss.clone();
  const Tensor x = tensor({{1.f, 2.f, 3.f}}), target = tensor({0});
  const float before = loss(x, target).item<float>();
  copy->to(DType::float64);
  CHECK(weight.dtype() == DType::float32);
  CHECK(loss(x, target).item<float>() == before);
  nn::TripletMarginWithDistanceLoss triplet(
      {.distance_function = [](const Tensor& a, const Tensor& b) { return sum(abs(a - b), -1); }});
  CHECK(triplet(zeros({1, 2}), zeros({1, 2}), ones({1, 2})).item<float>() == 0);
}

TEST_CASE("tensors of values and of memory", "[nn]") {
  CHECK(same(tensor({{1, 2, 3}, {4, 5, 6}}), arange(1, 7).view({2, 3})));
  CHECK(tensor(1.5).dim() == 0);
  CHECK(tensor({1, 2}).dtype() == DType::int64);
  CHECK(tensor({1, 2.5}).dtype() == DType::float32);
  CHECK(tensor({true, false}).dtype() == DType::bool_);
  CHECK(tensor({complex128(1, 2)}).dtype() == DType::complex64);
  CHECK(tensor({0.1}, DType::float64).item<double>() == 0.1);
  CHECK(tensor({1, 2}, DType::float32).dtype() == DType::float32);
  CHECK(tensor({}).numel() == 0);
  CHECK(tensor(std::vector<double>{1, 2}).dtype() == DType::float64);
  CHECK(tensor(std::vector<int32_t>{1, 2}, DType::float32)[1].item<float>() == 2);
  CHECK_THROWS_WITH(tensor({{1, 2}, {3}}), Contains("expected lists of equal lengths"));
  CHECK_THROWS_WITH(tensor({300}, DType::uint8), Contains("300"));

  std::vector<float> memory{0, 1, 2, 3, 4, 5};
  int freed = 0;
  {
    const Tensor t = from_blob(memory.data(), {2, 3}, DType::float32, [&](void* p) { freed += p == memory.data(); });
    t.mul_(2);
    const Tensor column = t.select(1, 2);
    CHECK(memory[5] == 10);
    CHECK(column[1].item<float>() == 10);
  }
  CHECK(freed == 1);
  CHECK(from_blob(memory.data(), {3, 2}, DType::float32, {}, {1, 3})[1][1].item<float>() == 8);
  CHECK_THROWS_WITH(from_blob(nullptr, {2}), Contains("got null"));
  CHECK_THROWS_WITH(from_blob(memory.data(), {-1}), Contains("sizes and strides >= 0"));
  CHECK_THROWS_WITH(from_blob(memory.data(), {1, 2}, DType::float32, {}, {1}), Contains("expected a stride for each"));
  CHECK(from_blob(nullptr, {0, 3}).numel() == 0);
}

}  // namespace
}  // namespace vesta
