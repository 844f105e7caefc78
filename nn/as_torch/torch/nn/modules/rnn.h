// Recurrent layers over [L, N, input_size], and their single steps.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <torch/nn/modules/common.h>
#include <torch/nn/options/rnn.h>
#include <torch/nn/utils/rnn.h>

#include <vesta/nn/layers/recurrent.h>

namespace torch::nn {
namespace detail {

/// The parameters of recurrent layers, `weight_ih_l0` and so on, made and checked by Vesta's.
template <class Derived>
class RNNImplBase : public Cloneable<Derived> {
 public:
  explicit RNNImplBase(const RNNOptionsBase& given) : options_base(given) { RNNImplBase::reset(); }
  void reset() override {
    const auto& o = options_base;
    const int64_t gates = std::holds_alternative<enumtype::kLSTM>(o.mode())  ? 4
                          : std::holds_alternative<enumtype::kGRU>(o.mode()) ? 3
                                                                             : 1;
    vesta::nn::Module made;
    recurrence_.emplace(made, short_name(), gates,
                        vesta::nn::LSTMOptions{.input_size = o.input_size(),
                                               .hidden_size = o.hidden_size(),
                                               .num_layers = o.num_layers(),
                                               .bias = o.bias(),
                                               .batch_first = o.batch_first(),
                                               .dropout = o.dropout(),
                                               .bidirectional = o.bidirectional(),
                                               .proj_size = o.proj_size()});
    for (const auto& [name, value] : made.named_parameters()) this->register_parameter(name, value);
  }
  /// Draws all parameters from U(-b, b), b = 1 / sqrt(hidden_size).
  void reset_parameters() { recurrence_->reset_parameters(); }
  /// Does nothing: parameters need no common memory.
  void flatten_parameters() {}
  std::vector<Tensor> all_weights() const { return recurrence_->weights; }
  void pretty_print(std::ostream& stream) const override {
    const auto& o = options_base;
    print_layer(stream, short_name().c_str(), "input_size=", o.input_size(), ", hidden_size=", o.hidden_size(),
                ", num_layers=", o.num_layers(), ", bias=", o.bias(), ", batch_first=", o.batch_first(),
                ", dropout=", o.dropout(), ", bidirectional=", o.bidirectional(),
                o.proj_size() > 0 ? ", proj_size=" + std::to_string(o.proj_size()) : std::string());
  }

  RNNOptionsBase options_base;

 protected:
  using Recurrence = vesta::nn::detail::Recurrence;

  template <class Options>
  static RNNOptionsBase base_of(RNNOptionsBase::rnn_options_base_mode_t mode, const Options& o) {
    return RNNOptionsBase(mode, o.input_size(), o.hidden_size())
        .num_layers(o.num_layers())
        .bias(o.bias())
        .batch_first(o.batch_first())
        .dropout(o.dropout())
        .bidirectional(o.bidirectional());
  }
  std::string short_name() const {
    const auto& mode = options_base.mode();
    return std::holds_alternative<enumtype::kLSTM>(mode)  ? "LSTM"
           : std::holds_alternative<enumtype::kGRU>(mode) ? "GRU"
                                                          : "RNN";
  }
  static std::vector<Tensor> states(const Tensor& hx) {
    return hx.defined() ? std::vector<Tensor>{hx} : std::vector<Tensor>();
  }
  static std::vector<Tensor> states(const std::optional<std::tuple<Tensor, Tensor>>& hx) {
    return hx ? std::vector<Tensor>{std::get<0>(*hx), std::get<1>(*hx)} : std::vector<Tensor>();
  }
  /// Calls an op with a padded input and one state.
  template <class Op>
  std::tuple<Tensor, Tensor> run(const Op& op, const Tensor& input, const Tensor& hx) {
    const auto& o = options_base;
    const auto call = recurrence_->prepare(input, states(hx), 1);
    auto [y, h] = op(call.input, call.states[0], recurrence_->weights, o.bias(), o.num_layers(), o.dropout(),
                     this->is_training(), o.bidirectional(), o.batch_first());
    return {recurrence_->output(call, y), Recurrence::state(call, h)};
  }
  /// Calls an op with a packed input and one state.
  template <class Op>
  std::tuple<utils::rnn::PackedSequence, Tensor> run_packed(const Op& op, const utils::rnn::PackedSequence& given,
                                                            const Tensor& hx) {
    const auto& o = options_base;
    const vesta::nn::PackedSequence& input = given.packed();
    const auto call = recurrence_->prepare(input, states(hx), 1);
    auto [y, h] = op(call.input, input.batch_sizes, call.states[0], recurrence_->weights, o.bias(), o.num_layers(),
                     o.dropout(), this->is_training(), o.bidirectional());
    return {with_data(input, y), Recurrence::state(input, h)};
  }
  static utils::rnn::PackedSequence with_data(const vesta::nn::PackedSequence& input, const Tensor& data) {
    return vesta::nn::PackedSequence{data, input.batch_sizes, input.sorted_indices, input.unsorted_indices};
  }

  std::optional<Recurrence> recurrence_;
};

}  // namespace detail

/// A recurrent layer h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh. Gives the outputs [L, N,
/// directions * hidden_size] and the last state [layers * directions, N, hidden_size].
class RNNImpl : public detail::RNNImplBase<RNNImpl> {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& o) : RNNImplBase(base_of(mode_of(o), o)), options(o) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {}) {
    return tanh() ? run([](const auto&... a) { return vesta::rnn_tanh(a...); }, input, hx)
                  : run([](const auto&... a) { return vesta::rnn_relu(a...); }, input, hx);
  }
  /// Does the same for sequences of different lengths; the state is in the order of the unpacked ones.
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(const utils::rnn::PackedSequence& input,
                                                                           Tensor hx = {}) {
    return tanh() ? run_packed([](const auto&... a) { return vesta::rnn_tanh(a...); }, input, hx)
                  : run_packed([](const auto&... a) { return vesta::rnn_relu(a...); }, input, hx);
  }

  RNNOptions options;

 private:
  static detail::RNNOptionsBase::rnn_options_base_mode_t mode_of(const RNNOptions& o) {
    if (std::holds_alternative<enumtype::kTanh>(o.nonlinearity())) return torch::kRNN_TANH;
    return torch::kRNN_RELU;
  }
  bool tanh() const { return std::holds_alternative<enumtype::kTanh>(options.nonlinearity()); }
};
TORCH_MODULE(RNN);

/// A recurrent layer with gates and a cell. Gives the outputs and the last states (h, c).
class LSTMImpl : public detail::RNNImplBase<LSTMImpl> {
 public:
  using State = std::tuple<Tensor, Tensor>;
  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& o)
      : RNNImplBase(base_of(torch::kLSTM, o).proj_size(o.proj_size())), options(o) {}
  std::tuple<Tensor, State> forward(const Tensor& input, std::optional<State> hx_opt = {}) {
    const auto& o = options;
    const auto call = recurrence_->prepare(input, states(hx_opt), 2);
    auto [y, h, c] = vesta::lstm(call.input, call.states, recurrence_->weights, o.bias(), o.num_layers(), o.dropout(),
                                 is_training(), o.bidirectional(), o.batch_first());
    return {recurrence_->output(call, y), {Recurrence::state(call, h), Recurrence::state(call, c)}};
  }
  /// Does the same for sequences of different lengths; the states are in the order of the unpacked ones.
  std::tuple<utils::rnn::PackedSequence, State> forward_with_packed_input(const utils::rnn::PackedSequence& given,
                                                                          std::optional<State> hx_opt = {}) {
    const auto& o = options;
    const vesta::nn::PackedSequence& input = given.packed();
    const auto call = recurrence_->prepare(input, states(hx_opt), 2);
    auto [y, h, c] = vesta::lstm(call.input, input.batch_sizes, call.states, recurrence_->weights, o.bias(),
                                 o.num_layers(), o.dropout(), is_training(), o.bidirectional());
    return {with_data(input, y), {Recurrence::state(input, h), Recurrence::state(input, c)}};
  }

  LSTMOptions options;
};
TORCH_MODULE(LSTM);

/// A recurrent layer with two gates. Gives the outputs and the last state.
class GRUImpl : public detail::RNNImplBase<GRUImpl> {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& o) : RNNImplBase(base_of(torch::kGRU, o)), options(o) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {}) {
    return run([](const auto&... a) { return vesta::gru(a...); }, input, hx);
  }
  /// Does the same for sequences of different lengths; the state is in the order of the unpacked ones.
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(const utils::rnn::PackedSequence& input,
                                                                           Tensor hx = {}) {
    return run_packed([](const auto&... a) { return vesta::gru(a...); }, input, hx);
  }

  GRUOptions options;
};
TORCH_MODULE(GRU);

namespace detail {

/// The parameters of one step, made and checked by Vesta's.
template <class Derived>
class RNNCellImplBase : public Cloneable<Derived> {
 public:
  RNNCellImplBase(std::string name, const RNNCellOptionsBase& given) : options_base(given), kind_(std::move(name)) {
    RNNCellImplBase::reset();
  }
  void reset() override {
    const auto& o = options_base;
    vesta::nn::Module made;
    cell_.emplace(made, kind_, o.num_chunks(),
                  vesta::nn::RecurrentCellOptions{
                      .input_size = o.input_size(), .hidden_size = o.hidden_size(), .bias = o.bias()});
    weight_ih = this->register_parameter("weight_ih", cell_->weight_ih);
    weight_hh = this->register_parameter("weight_hh", cell_->weight_hh);
    bias_ih = this->register_parameter("bias_ih", cell_->bias_ih, o.bias());
    bias_hh = this->register_parameter("bias_hh", cell_->bias_hh, o.bias());
  }
  void reset_parameters() { cell_->reset_parameters(); }
  void pretty_print(std::ostream& stream) const override {
    const std::string nonlinearity = get_nonlinearity_str();
    print_layer(stream, kind_.c_str(), options_base.input_size(), ", ", options_base.hidden_size(),
                options_base.bias() ? "" : ", bias=false",
                nonlinearity.empty() || nonlinearity == "kTanh" ? std::string() : ", nonlinearity=" + nonlinearity);
  }

  RNNCellOptionsBase options_base;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  virtual std::string get_nonlinearity_str() const { return ""; }
  /// Calls an op of one state.
  template <class Op>
  Tensor run(const Op& op, const Tensor& input, const Tensor& hx) {
    const Tensor h = op(cell_->batched(input), cell_->state(input, hx), weight_ih, weight_hh, bias_ih, bias_hh);
    return input.dim() == 2 ? h : vesta::squeeze(h, 0);
  }

  std::string kind_;
  std::optional<vesta::nn::detail::RecurrentCell> cell_;
};

}  // namespace detail

/// One step of RNN: input [N, input_size], state [N, hidden_size]; gives the new state.
class RNNCellImpl : public detail::RNNCellImplBase<RNNCellImpl> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size) : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& o)
      : RNNCellImplBase("RNNCell", {o.input_size(), o.hidden_size(), o.bias(), 1}), options(o) {}
  Tensor forward(const Tensor& input, const Tensor& hx = {}) {
    return std::holds_alternative<enumtype::kTanh>(options.nonlinearity())
               ? run([](const auto&... a) { return vesta::rnn_tanh_cell(a...); }, input, hx)
               : run([](const auto&... a) { return vesta::rnn_relu_cell(a...); }, input, hx);
  }

  RNNCellOptions options;

 protected:
  std::string get_nonlinearity_str() const override { return enumtype::get_enum_name(options.nonlinearity()); }
};
TORCH_MODULE(RNNCell);

/// One step of LSTM: input [N, input_size], states (h, c) [N, hidden_size]; gives the new states.
class LSTMCellImpl : public detail::RNNCellImplBase<LSTMCellImpl> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size) : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& o)
      : RNNCellImplBase("LSTMCell", {o.input_size(), o.hidden_size(), o.bias(), 4}), options(o) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, std::optional<std::tuple<Tensor, Tensor>> hx_opt = {}) {
    const Tensor h = cell_->state(input, hx_opt ? std::get<0>(*hx_opt) : Tensor());
    const Tensor c = cell_->state(input, hx_opt ? std::get<1>(*hx_opt) : Tensor());
    auto [h1, c1] = vesta::lstm_cell(cell_->batched(input), {h, c}, weight_ih, weight_hh, bias_ih, bias_hh);
    if (input.dim() == 2) return {h1, c1};
    return {vesta::squeeze(h1, 0), vesta::squeeze(c1, 0)};
  }

  LSTMCellOptions options;
};
TORCH_MODULE(LSTMCell);

/// One step of GRU: input [N, input_size], state [N, hidden_size]; gives the new state.
class GRUCellImpl : public detail::RNNCellImplBase<GRUCellImpl> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size) : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& o)
      : RNNCellImplBase("GRUCell", {o.input_size(), o.hidden_size(), o.bias(), 3}), options(o) {}
  Tensor forward(const Tensor& input, const Tensor& hx = {}) {
    return run([](const auto&... a) { return vesta::gru_cell(a...); }, input, hx);
  }

  GRUCellOptions options;
};
TORCH_MODULE(GRUCell);

}  // namespace torch::nn
