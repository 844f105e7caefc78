// Sequences of different lengths in recurrent layers, and containers of parameters.
#include <vesta/nn/layers/list.h>

#include <catch2/catch.hpp>

#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/random.h>

#include "support.h"

namespace vesta {
namespace {

using Catch::Matchers::Contains;
using test::same;
namespace rnn = nn::utils::rnn;

bool close(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.sizes(), b.sizes()) && allclose(a, b, 1e-5, 1e-6);
}

std::vector<Tensor> sequences(std::initializer_list<int64_t> lengths, int64_t width) {
  std::vector<Tensor> r;
  for (int64_t n : lengths) r.push_back(randn({n, width}));
  return r;
}

}  // namespace

TEST_CASE("padded and packed sequences are each other's inverses", "[nn]") {
  const std::vector<Tensor> list{tensor({1., 2.}), tensor({3.}), tensor({4., 5., 6.})};
  CHECK(same(rnn::pad_sequence(list, true, -1), tensor({{1., 2., -1.}, {3., -1., -1.}, {4., 5., 6.}})));
  CHECK(same(rnn::pad_sequence(list, false, 0, "left"), tensor({{0., 0., 4.}, {1., 0., 5.}, {2., 3., 6.}})));
  const rnn::PackedSequence packed = rnn::pack_sequence(list, false);
  CHECK(same(packed.data, tensor({4., 1., 3., 5., 2., 6.})));
  CHECK(same(packed.batch_sizes, tensor({3, 2, 1})));
  CHECK(same(packed.sorted_indices, tensor({2, 0, 1})));
  CHECK(same(packed.unsorted_indices, tensor({1, 2, 0})));
  const std::vector<Tensor> back = rnn::unpack_sequence(packed);
  for (size_t i = 0; i < list.size(); ++i) CHECK(same(back[i], list[i]));
  const rnn::PaddedSequence padded = rnn::pad_packed_sequence(packed, false, 9, 4);
  CHECK(same(padded.data, tensor({{1., 3., 4.}, {2., 9., 5.}, {9., 9., 6.}, {9., 9., 9.}})));
  CHECK(same(padded.lengths, tensor({2, 1, 3})));
  const rnn::PackedSequence sorted = rnn::pack_padded_sequence(tensor({{1., 2.}, {3., 0.}}), tensor({2, 1}), true);
  CHECK(same(sorted.data, tensor({1., 3., 2.})));
  CHECK_FALSE(sorted.sorted_indices.defined());
}

TEST_CASE("what cannot be padded or packed", "[nn]") {
  const Tensor batch = ones({3, 2});
  CHECK_THROWS_WITH(rnn::pack_padded_sequence(batch, tensor({1, 3})), Contains("sorted in decreasing order"));
  CHECK_THROWS_WITH(rnn::pack_padded_sequence(batch, tensor({3, 0})), Contains("greater than 0"));
  CHECK_THROWS_WITH(rnn::pack_padded_sequence(batch, tensor({4, 1})), Contains("at most 3"));
  CHECK_THROWS_WITH(rnn::pack_padded_sequence(batch, tensor({3})), Contains("batch_size=2"));
  CHECK_THROWS_WITH(rnn::pack_padded_sequence(batch, tensor({3., 1.})), Contains("1D CPU int64"));
  CHECK_THROWS_WITH(rnn::pack_padded_sequence({}, tensor({3, 1})), Contains("input"));
  CHECK_THROWS_WITH(rnn::pad_sequence({}), Contains("empty list"));
  CHECK_THROWS_WITH(rnn::pad_sequence({ones({2, 3}), ones({2, 4})}), Contains("same sizes"));
  CHECK_THROWS_WITH(rnn::pad_sequence({ones({2})}, false, 0, "up"), Contains("left or right"));
  CHECK_THROWS_WITH(rnn::pad_packed_sequence({}), Contains("packed sequence"));
  CHECK_THROWS_WITH(rnn::pad_packed_sequence(rnn::pack_sequence({ones({3})}), false, 0, 2), Contains("total_length=2"));
  nn::LSTM lstm(4, 3);
  CHECK_THROWS_WITH(lstm.forward_with_packed_input({}), Contains("LSTM: expected packed sequences"));
  CHECK_THROWS_WITH(lstm.forward_with_packed_input(rnn::pack_sequence(sequences({2, 1}, 5))),
                    Contains("Expected 4, got 5"));
  CHECK_THROWS_WITH(lstm.forward_with_packed_input(rnn::pack_sequence(sequences({2, 1}, 4)),
                                                   nn::LSTMState{ones({1, 3, 3}), ones({1, 3, 3})}),
                    Contains("Expected hidden[0] size"));
}

TEST_CASE("a recurrent layer of packed sequences does what it does for each alone", "[nn]") {
  manual_seed(3);
  const std::vector<Tensor> list = sequences({2, 5, 1, 3}, 4);
  const rnn::PackedSequence packed = rnn::pack_sequence(list, false);
  const Tensor h0 = randn({4, 4, 2}), c0 = randn({4, 4, 3}), g0 = randn({4, 4, 3});
  nn::LSTM lstm({.input_size = 4, .hidden_size = 3, .num_layers = 2, .bidirectional = true, .proj_size = 2});
  nn::GRU gru({.input_size = 4, .hidden_size = 3, .num_layers = 2, .bidirectional = true});
  nn::RNN net({.input_size = 4, .hidden_size = 3, .num_layers = 2, .nonlinearity = "relu", .bidirectional = true});
  auto [y, state] = lstm.forward_with_packed_input(packed, nn::LSTMState{h0, c0});
  auto [z, last] = gru.forward_with_packed_input(packed, g0);
  auto [w, end] = net.forward_with_packed_input(packed);
  const std::vector<Tensor> ys = rnn::unpack_sequence(y), zs = rnn::unpack_sequence(z), ws = rnn::unpack_sequence(w);
  for (size_t i = 0; i < list.size(); ++i) {
    const auto at = [&](const Tensor& t) { return t.select(1, int64_t(i)); };
    auto [yi, si] = lstm(list[i], nn::LSTMState{at(h0), at(c0)});
    CHECK(close(ys[i], yi));
    CHECK(close(at(std::get<0>(state)), std::get<0>(si)));
    CHECK(close(at(std::get<1>(state)), std::get<1>(si)));
    auto [zi, hi] = gru(list[i], at(g0));
    CHECK(close(zs[i], zi));
    CHECK(close(at(last), hi));
    auto [wi, ei] = net(list[i]);
    CHECK(close(ws[i], wi));
    CHECK(close(at(end), ei));
  }
  const Tensor x = ones({2, 4}).set_requires_grad(true);
  auto [out, unused] = gru.forward_with_packed_input(rnn::pack_sequence({x, x.narrow(0, 0, 1)}));
  sum(out.data).backward();
  CHECK(x.grad().defined());
}

TEST_CASE("lists and dictionaries of parameters", "[nn]") {
  nn::ParameterList list{ones({2, 3}), zeros({4})};
  list.append(full({}, 2.0));
  CHECK(list.size() == 3);
  CHECK(list[1].requires_grad());
  CHECK(list.repr() ==
        "ParameterList(\n    (0): Parameter containing: [vesta.float32 of size 2x3]\n"
        "    (1): Parameter containing: [vesta.float32 of size 4]\n"
        "    (2): Parameter containing: [vesta.float32 of size ]\n)");
  CHECK_THROWS_WITH(list[3], Contains("index 3 is out of range"));
  CHECK_THROWS_WITH(list.append(Tensor()), Contains("undefined"));
  const auto copy = std::dynamic_pointer_cast<nn::ParameterList>(list.clone());
  {
    const NoGrad off;
    list[0].fill_(7);
  }
  CHECK((*copy)[0][0][0].item<float>() == 1);
  CHECK(copy->state_dict().size() == 3);
  copy->load_state_dict(list.state_dict());
  CHECK(same(list[0], (*copy)[0]));

  nn::ParameterDict dict{{"a", ones({2})}};
  dict.insert("b", zeros({1}));
  CHECK(dict.contains("b"));
  CHECK_FALSE(dict.contains("c"));
  CHECK(same(dict["a"], ones({2})));
  CHECK_THROWS_WITH(dict["c"], Contains("got 'c'"));
  CHECK_THROWS_WITH(dict.insert("a", ones({2})), Contains("already exists"));
  CHECK(dict.size() == 2);
  std::string names;
  for (const auto& [name, parameter] : dict) names += name;
  CHECK(names == "ab");
  CHECK(nn::ParameterDict().repr() == "ParameterDict()");
  const auto other = std::dynamic_pointer_cast<nn::ParameterDict>(dict.clone());
  CHECK(same((*other)["b"], dict["b"]));
  CHECK_FALSE((*other)["b"].is_same(dict["b"]));
}

TEST_CASE("the adaptive softmax knows all classes", "[nn]") {
  manual_seed(5);
  nn::AdaptiveLogSoftmaxWithLoss layer({.in_features = 8, .n_classes = 12, .cutoffs = {3, 7}, .div_value = 2});
  const Tensor x = randn({6, 8}), target = tensor({0, 2, 3, 6, 7, 11});
  auto [output, loss] = layer(x, target);
  const Tensor all = layer.log_prob(x);
  CHECK(close(exp(all).sum(1), ones({6})));
  CHECK(close(output, gather(all, 1, target.unsqueeze(1)).squeeze(1)));
  CHECK(close(loss, -output.mean()));
  CHECK(same(layer.predict(x), argmax(all, 1)));
  CHECK_THROWS_WITH(layer(x, tensor({0, 2, 3, 6, 7, 12})), Contains("Target values should be in [0, 11]"));
  CHECK_THROWS_WITH(nn::AdaptiveLogSoftmaxWithLoss(8, 12, nn::Shape{7, 3}), Contains("increasing order"));
  CHECK_THROWS_WITH(nn::FractionalMaxPool2d(2)(ones({1, 4, 4})), Contains("output_size or an output_ratio"));
  CHECK_THROWS_WITH(nn::FractionalMaxPool2d(3, 3)(ones({1, 4, 4})), Contains("too large"));
}

}  // namespace vesta
