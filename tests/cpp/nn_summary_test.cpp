// nn::summary: the table, its numbers, and that the model is left as it was. test_summary.py compares it with Python's.
#include <vesta/nn/summary.h>

#include <catch2/catch.hpp>

#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/random.h>
#include <vesta/nn/layers/list.h>

namespace vesta {
namespace {

using Catch::Matchers::Contains;

/// A model that calls a layer twice, draws a random number, writes a buffer, and has layers that it does not call.
struct Twice : nn::ModuleOf<Twice> {
  std::shared_ptr<nn::Linear> layer = register_module("layer", nn::make<nn::Linear>(4, 4));
  std::shared_ptr<nn::Linear> idle = register_module("idle", nn::make<nn::Linear>(2, 2));
  std::shared_ptr<nn::ModuleList> list = register_module("list", nn::make<nn::ModuleList>());
  Tensor scale = register_parameter("scale", ones({4}));
  Tensor calls = register_buffer("calls", zeros({1}));
  Tensor forward(const Tensor& x) override {
    calls.add_(1);
    return (*layer)((*layer)(x) + rand({4})) * scale;
  }
};

}  // namespace

TEST_CASE("a summary is the table of its calls", "[nn]") {
  nn::Sequential net{nn::make<nn::Linear>(4, 3), nn::make<nn::ReLU>()};
  const nn::Summary s = nn::summary(net, zeros({2, 4}));
  CHECK(s.str() ==
        "Layer       Kind    Output  Parameters  Multiply-adds  Activations\n"
        "Sequential          [2, 3]          15             24         48 B\n"
        "  0         Linear  [2, 3]          15             24         24 B\n"
        "  1         ReLU    [2, 3]                                    24 B\n"
        "Parameters: 15 (60 B), all trained. Multiply-adds: 24. Activations: 48 B. Input: 32 B.");
  CHECK(s.rows[1].name == "0");
  CHECK(s.rows[1].inputs == "([2, 4])");
  CHECK(s.multiply_adds == 24);
}

TEST_CASE("a summary counts calls, names what is not called and not counted", "[nn]") {
  Twice net;
  net.idle->requires_grad_(false);
  const nn::Summary s = nn::summary(net, zeros({2, 4}));
  REQUIRE(s.rows.size() == 3);
  CHECK(s.rows[2].call == 2);
  CHECK(s.multiply_adds == 2 * 8 * 4);
  CHECK(s.parameters == 20 + 6 + 4);
  CHECK(s.trainable_parameters == 24);
  CHECK(s.not_called == std::vector<std::string>{"idle"});
  CHECK(s.uncounted == std::vector<std::string>{"Twice"});
  CHECK_THAT(s.str(), Contains("layer (call 2)") && Contains("24 trained") && Contains("Buffers: 4 B."));

  const auto counts = [](nn::Module& m, const nn::Values&, const nn::Value&) -> std::optional<int64_t> {
    return m.kind() == "Twice" ? std::optional<int64_t>(7) : std::nullopt;
  };
  const nn::Summary counted = nn::summary(net, zeros({2, 4}), counts);
  CHECK(counted.multiply_adds == 7);
  CHECK(counted.uncounted.empty());
}

TEST_CASE("a summary leaves the model as it was, also where it raises", "[nn]") {
  Twice net;
  net.layer->eval();
  int calls = 0;
  net.register_forward_hook([&](nn::Module&, const Tensor&, const Tensor&) { ++calls; });
  const Tensor state = default_generator().get_state();
  Tensor x = zeros({2, 4});
  nn::summary(net, x);
  CHECK_THROWS(nn::summary(net, zeros({2, 5})));
  CHECK(calls == 1);
  CHECK(net.calls.item<float>() == 0);
  CHECK(net.is_training());
  CHECK_FALSE(net.layer->is_training());
  CHECK(equal(default_generator().get_state(), state));
  net(x);
  CHECK(calls == 2);
}

TEST_CASE("a summary of a model of several inputs and outputs", "[nn]") {
  nn::LSTM lstm({.input_size = 3, .hidden_size = 5});
  const nn::Summary s = nn::summary(lstm, nn::Values{zeros({7, 2, 3})});
  CHECK(s.rows[0].outputs == "([7, 2, 5], ([1, 2, 5], [1, 2, 5]))");
  CHECK(s.multiply_adds == 2 * 7 * 4 * 5 * (3 + 5));
  nn::MultiheadAttention attention(8, 2);
  const Tensor q = zeros({5, 1, 8});
  CHECK(nn::summary(attention, nn::Values{q, q, q}).not_called.empty());
}

}  // namespace vesta
