#include <vesta/nn/layers/recurrent.h>

#include <cmath>

#include <vesta/core/base/warning.h>
#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/core/ops/view.h>
#include <vesta/nn/init.h>

namespace vesta::nn {
namespace detail {

LSTMOptions sizes_of(const GRUOptions& o) {
  return {o.input_size, o.hidden_size, o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional, 0, o.dtype};
}
LSTMOptions sizes_of(const RNNOptions& o) {
  VESTA_CHECK(o.nonlinearity == "tanh" || o.nonlinearity == "relu", value, "RNN: Unknown nonlinearity '",
              o.nonlinearity, "'. Select from 'tanh' or 'relu'.");
  return {o.input_size, o.hidden_size, o.num_layers, o.bias, o.batch_first, o.dropout, o.bidirectional, 0, o.dtype};
}

Recurrence::Recurrence(Module& module, std::string op, int64_t gates, const LSTMOptions& o)
    : sizes(o), op_(std::move(op)) {
  VESTA_CHECK(o.dropout >= 0 && o.dropout <= 1, value, op_, ": dropout should be a number in range [0, 1], got ",
              o.dropout, ".");
  VESTA_CHECK(o.input_size >= 0, value, op_, ": expected input_size >= 0, got ", o.input_size, ".");
  VESTA_CHECK(o.hidden_size > 0, value, op_, ": hidden_size must be greater than zero, got ", o.hidden_size, ".");
  VESTA_CHECK(o.num_layers > 0, value, op_, ": num_layers must be greater than zero, got ", o.num_layers, ".");
  VESTA_CHECK(o.proj_size >= 0 && o.proj_size < o.hidden_size, value, op_,
              ": expected proj_size in [0, hidden_size), got ", o.proj_size, ".");
  if (o.dropout > 0 && o.num_layers == 1) {
    warn(text(op_, ": dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects ",
              "num_layers greater than 1, but got dropout=", o.dropout, " and num_layers=1"));
  }
  const int64_t rows = gates * o.hidden_size, out = o.proj_size ? o.proj_size : o.hidden_size;
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    for (int direction = 0; direction < (o.bidirectional ? 2 : 1); ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction ? "_reverse" : "");
      const auto add = [&](const char* name, const Dims& shape) {
        weights.push_back(module.register_parameter(name + suffix, empty(shape, o.dtype)));
      };
      add("weight_ih", {rows, layer == 0 ? o.input_size : out * (o.bidirectional ? 2 : 1)});
      add("weight_hh", {rows, out});
      if (o.bias) add("bias_ih", {rows}), add("bias_hh", {rows});
      if (o.proj_size) add("weight_hr", {o.proj_size, o.hidden_size});
    }
  }
  reset_parameters();
}

void Recurrence::reset_parameters() {
  const double bound = 1 / std::sqrt(double(sizes.hidden_size));
  for (const Tensor& w : weights) init::uniform_(w, -bound, bound);
}

void Recurrence::check_input(const Tensor& x) const {
  VESTA_CHECK(x.dtype() == weights[0].dtype() || autocast::mode(x.device().type()).enabled, value, op_,
              ": RNN input dtype (", x.dtype(), ") does not match weight dtype (", weights[0].dtype(),
              "). Convert input or model.");
  VESTA_CHECK(x.size(-1) == sizes.input_size, runtime, op_, ": input.size(-1) must be equal to input_size. Expected ",
              sizes.input_size, ", got ", x.size(-1), ".");
}

void Recurrence::check_states(Call& call, int64_t batch, size_t count, int64_t dim) const {
  const bool none = call.states.empty();
  for (size_t i = 0; i < count; ++i) {
    const int64_t width = i == 0 && sizes.proj_size ? sizes.proj_size : sizes.hidden_size;
    const Dims shape{sizes.num_layers * (sizes.bidirectional ? 2 : 1), batch, width};
    if (none) {
      call.states.push_back(zeros(shape, call.input.dtype(), call.input.device()));
      continue;
    }
    Tensor& h = call.states[i];
    VESTA_CHECK(h.defined() && h.dim() == dim, runtime, op_, ": For ", call.batched ? "batched 3-D" : "unbatched 2-D",
                " input, hx should also be ", dim, "-D but got ", h.defined() ? h.dim() : 0, "-D tensor");
    if (!call.batched) h = unsqueeze(h, 1);
    VESTA_CHECK(std::ranges::equal(h.sizes(), shape), runtime, op_, ": Expected hidden[", i, "] size ", IntSpan(shape),
                ", got ", h.sizes(), ".");
  }
}

Recurrence::Call Recurrence::prepare(const Tensor& given, const std::vector<Tensor>& given_states, size_t count) const {
  VESTA_CHECK(given.dim() == 2 || given.dim() == 3, value, op_, ": Expected input to be 2D or 3D, got ", given.dim(),
              "D instead");
  const bool batched = given.dim() == 3;
  const int64_t place = sizes.batch_first ? 0 : 1;
  Call call{batched ? given : unsqueeze(given, place), given_states, batched};
  check_input(call.input);
  check_states(call, call.input.size(place), count, given.dim());
  return call;
}

Recurrence::Call Recurrence::prepare(const PackedSequence& given, const std::vector<Tensor>& given_states,
                                     size_t count) const {
  VESTA_CHECK(
      given.data.defined() && given.data.dim() == 2 && given.batch_sizes.defined() && given.batch_sizes.numel() > 0,
      value, op_, ": expected packed sequences of elements [input_size] (input).");
  Call call{given.data, given_states, true};
  check_input(call.input);
  check_states(call, given.batch_sizes[0].item<int64_t>(), count, 3);
  if (given.sorted_indices.defined()) {
    for (Tensor& h : call.states) h = index_select(h, 1, given.sorted_indices);
  }
  return call;
}

Tensor Recurrence::output(const Call& call, const Tensor& y) const {
  return call.batched ? y : squeeze(y, sizes.batch_first ? 0 : 1);
}

Tensor Recurrence::state(const Call& call, const Tensor& h) { return call.batched ? h : squeeze(h, 1); }

Tensor Recurrence::state(const PackedSequence& input, const Tensor& h) {
  return input.unsorted_indices.defined() ? index_select(h, 1, input.unsorted_indices) : h;
}

RecurrentCell::RecurrentCell(Module& module, std::string op, int64_t gates, const RecurrentCellOptions& o)
    : op_(std::move(op)), hidden_size_(o.hidden_size) {
  VESTA_CHECK(o.input_size >= 0 && o.hidden_size >= 0, value, op_, ": expected sizes >= 0, got ", o.input_size, " and ",
              o.hidden_size, " (input_size, hidden_size).");
  const int64_t rows = gates * o.hidden_size;
  weight_ih = module.register_parameter("weight_ih", empty({rows, o.input_size}, o.dtype));
  weight_hh = module.register_parameter("weight_hh", empty({rows, o.hidden_size}, o.dtype));
  bias_ih = module.register_parameter("bias_ih", o.bias ? empty({rows}, o.dtype) : Tensor());
  bias_hh = module.register_parameter("bias_hh", o.bias ? empty({rows}, o.dtype) : Tensor());
  reset_parameters();
}

void RecurrentCell::reset_parameters() {
  const double bound = hidden_size_ > 0 ? 1 / std::sqrt(double(hidden_size_)) : 0;
  for (const Tensor& w : {weight_ih, weight_hh, bias_ih, bias_hh}) {
    if (w.defined()) init::uniform_(w, -bound, bound);
  }
}

Tensor RecurrentCell::batched(const Tensor& input) const {
  VESTA_CHECK(input.dim() == 1 || input.dim() == 2, value, op_, ": Expected input to be 1D or 2D, got ", input.dim(),
              "D instead");
  return input.dim() == 2 ? input : unsqueeze(input, 0);
}

Tensor RecurrentCell::state(const Tensor& input, MaybeTensor given) const {
  if (!given.defined()) {
    return zeros({input.dim() == 2 ? input.size(0) : 1, hidden_size_}, input.dtype(), input.device());
  }
  VESTA_CHECK(given->dim() == 1 || given->dim() == 2, value, op_, ": Expected hidden to be 1D or 2D, got ",
              given->dim(), "D instead");
  return input.dim() == 2 ? *given : unsqueeze(*given, 0);
}

}  // namespace detail

LSTM::LSTM(Options o) : LayerOf(o), recurrence_(*this, "LSTM", 4, o) {}

std::tuple<Tensor, LSTMState> LSTM::forward(const Tensor& input, const std::optional<LSTMState>& hx) {
  std::vector<Tensor> given;
  if (hx) given = {std::get<0>(*hx), std::get<1>(*hx)};
  const auto call = recurrence_.prepare(input, given, 2);
  auto [y, h, c] = lstm(call.input, call.states, recurrence_.weights, options.bias, options.num_layers, options.dropout,
                        is_training(), options.bidirectional, options.batch_first);
  return {recurrence_.output(call, y), {recurrence_.state(call, h), recurrence_.state(call, c)}};
}

std::tuple<PackedSequence, LSTMState> LSTM::forward_with_packed_input(const PackedSequence& input,
                                                                      const std::optional<LSTMState>& hx) {
  return in_context([&]() -> std::tuple<PackedSequence, LSTMState> {
    std::vector<Tensor> given;
    if (hx) given = {std::get<0>(*hx), std::get<1>(*hx)};
    const auto call = recurrence_.prepare(input, given, 2);
    auto [y, h, c] = lstm(call.input, input.batch_sizes, call.states, recurrence_.weights, options.bias,
                          options.num_layers, options.dropout, is_training(), options.bidirectional);
    return {{y, input.batch_sizes, input.sorted_indices, input.unsorted_indices},
            {detail::Recurrence::state(input, h), detail::Recurrence::state(input, c)}};
  });
}

GRU::GRU(Options o) : LayerOf(o), recurrence_(*this, "GRU", 3, detail::sizes_of(o)) {}

TensorPair GRU::forward(const Tensor& input, MaybeTensor hx) {
  const auto call = recurrence_.prepare(input, hx ? std::vector{*hx} : std::vector<Tensor>(), 1);
  auto [y, h] = gru(call.input, call.states[0], recurrence_.weights, options.bias, options.num_layers, options.dropout,
                    is_training(), options.bidirectional, options.batch_first);
  return {recurrence_.output(call, y), recurrence_.state(call, h)};
}

std::tuple<PackedSequence, Tensor> GRU::forward_with_packed_input(const PackedSequence& input, MaybeTensor hx) {
  return in_context([&]() -> std::tuple<PackedSequence, Tensor> {
    const auto call = recurrence_.prepare(input, hx ? std::vector{*hx} : std::vector<Tensor>(), 1);
    auto [y, h] = gru(call.input, input.batch_sizes, call.states[0], recurrence_.weights, options.bias,
                      options.num_layers, options.dropout, is_training(), options.bidirectional);
    return {{y, input.batch_sizes, input.sorted_indices, input.unsorted_indices}, detail::Recurrence::state(input, h)};
  });
}

RNN::RNN(Options o) : LayerOf(o), recurrence_(*this, "RNN", 1, detail::sizes_of(o)) {}

TensorPair RNN::forward(const Tensor& input, MaybeTensor hx) {
  const auto call = recurrence_.prepare(input, hx ? std::vector{*hx} : std::vector<Tensor>(), 1);
  const auto run = [&](const auto& op) {
    return op(call.input, call.states[0], recurrence_.weights, options.bias, options.num_layers, options.dropout,
              is_training(), options.bidirectional, options.batch_first);
  };
  auto [y, h] = options.nonlinearity == "tanh" ? run([](const auto&... a) { return rnn_tanh(a...); })
                                               : run([](const auto&... a) { return rnn_relu(a...); });
  return {recurrence_.output(call, y), recurrence_.state(call, h)};
}

std::tuple<PackedSequence, Tensor> RNN::forward_with_packed_input(const PackedSequence& input, MaybeTensor hx) {
  return in_context([&]() -> std::tuple<PackedSequence, Tensor> {
    const auto call = recurrence_.prepare(input, hx ? std::vector{*hx} : std::vector<Tensor>(), 1);
    const auto run = [&](const auto& op) {
      return op(call.input, input.batch_sizes, call.states[0], recurrence_.weights, options.bias, options.num_layers,
                options.dropout, is_training(), options.bidirectional);
    };
    auto [y, h] = options.nonlinearity == "tanh" ? run([](const auto&... a) { return rnn_tanh(a...); })
                                                 : run([](const auto&... a) { return rnn_relu(a...); });
    return {{y, input.batch_sizes, input.sorted_indices, input.unsorted_indices}, detail::Recurrence::state(input, h)};
  });
}

LSTMCell::LSTMCell(Options o) : LayerOf(o), cell_(*this, "LSTMCell", 4, o) {}

LSTMState LSTMCell::forward(const Tensor& input, const std::optional<LSTMState>& hx) {
  const Tensor x = cell_.batched(input);
  const Tensor h = cell_.state(input, hx ? MaybeTensor(std::get<0>(*hx)) : MaybeTensor());
  const Tensor c = cell_.state(input, hx ? MaybeTensor(std::get<1>(*hx)) : MaybeTensor());
  auto [h1, c1] = lstm_cell(x, {h, c}, cell_.weight_ih, cell_.weight_hh, cell_.bias_ih, cell_.bias_hh);
  if (input.dim() == 2) return {h1, c1};
  return {squeeze(h1, 0), squeeze(c1, 0)};
}

GRUCell::GRUCell(Options o) : LayerOf(o), cell_(*this, "GRUCell", 3, o) {}

Tensor GRUCell::forward(const Tensor& input, MaybeTensor hx) {
  const Tensor h = gru_cell(cell_.batched(input), cell_.state(input, hx), cell_.weight_ih, cell_.weight_hh,
                            cell_.bias_ih, cell_.bias_hh);
  return input.dim() == 2 ? h : squeeze(h, 0);
}

RNNCell::RNNCell(Options o) : LayerOf(o), cell_(*this, "RNNCell", 1, {o.input_size, o.hidden_size, o.bias, o.dtype}) {
  VESTA_CHECK(o.nonlinearity == "tanh" || o.nonlinearity == "relu", value,
              "RNNCell: Unknown nonlinearity: ", o.nonlinearity, ".");
}

Tensor RNNCell::forward(const Tensor& input, MaybeTensor hx) {
  const Tensor x = cell_.batched(input), h = cell_.state(input, hx);
  const Tensor y = options.nonlinearity == "tanh"
                       ? rnn_tanh_cell(x, h, cell_.weight_ih, cell_.weight_hh, cell_.bias_ih, cell_.bias_hh)
                       : rnn_relu_cell(x, h, cell_.weight_ih, cell_.weight_hh, cell_.bias_ih, cell_.bias_hh);
  return input.dim() == 2 ? y : squeeze(y, 0);
}

}  // namespace vesta::nn
