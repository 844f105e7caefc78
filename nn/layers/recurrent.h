// Recurrent layers over [L, N, input_size] (or [N, L, input_size], or [L, input_size]), and their single steps.
#pragma once
#include <vesta/nn/layer.h>
#include <vesta/nn/utils/rnn.h>

namespace vesta::nn {

using utils::rnn::PackedSequence;

/// The hidden state and the cell of an LSTM.
using LSTMState = std::tuple<Tensor, Tensor>;

struct LSTMOptions {
  static constexpr size_t required = 2;
  int64_t input_size, hidden_size;
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  // of each layer's output but the last one's, while training
  bool bidirectional = false;
  int64_t proj_size = 0;  // the size to which the output is projected; 0: not at all
  DType dtype = DType::float32;
  VESTA_FIELDS(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size)
  static constexpr std::string_view shown =
      "{input_size}, {hidden_size}[, proj_size={proj_size}][, num_layers={num_layers}][, bias={bias}]"
      "[, batch_first={batch_first}][, dropout={dropout}][, bidirectional={bidirectional}]";
};
struct GRUOptions {
  static constexpr size_t required = 2;
  int64_t input_size, hidden_size;
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  DType dtype = DType::float32;
  VESTA_FIELDS(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
  static constexpr std::string_view shown =
      "{input_size}, {hidden_size}[, num_layers={num_layers}][, bias={bias}][, batch_first={batch_first}]"
      "[, dropout={dropout}][, bidirectional={bidirectional}]";
};
struct RNNOptions {
  static constexpr size_t required = 2;
  int64_t input_size, hidden_size;
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  // or "relu"
  bool bias = true, batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
  DType dtype = DType::float32;
  VESTA_FIELDS(input_size, hidden_size, num_layers, nonlinearity, bias, batch_first, dropout, bidirectional)
  static constexpr std::string_view shown = GRUOptions::shown;
};

namespace detail {
/// The part that recurrent layers share: sizes, parameters `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`,
/// `weight_hr_l0`, those of the other direction (`..._reverse`) and of further layers; shapes of inputs and states.
class VESTA_API Recurrence {
 public:
  Recurrence(Module& module, std::string op, int64_t gates, const LSTMOptions& options);
  /// Draws all parameters from U(-b, b), b = 1 / sqrt(hidden_size).
  void reset_parameters();

  LSTMOptions sizes;
  std::vector<Tensor> weights;  // in the order of the ops

  /// An input [L, N, *] (or [N, L, *]) with its states, checked; `batched` is false if the batch was added.
  struct Call {
    Tensor input;
    std::vector<Tensor> states;
    bool batched;
  };
  /// Prepares a call with so many states; zeros stand in for missing ones.
  Call prepare(const Tensor& input, const std::vector<Tensor>& states, size_t count) const;
  /// Prepares a call with packed sequences; states [layers * directions, N, *] are in the callers' order.
  Call prepare(const PackedSequence& input, const std::vector<Tensor>& states, size_t count) const;
  /// Takes the batch off that prepare() has added.
  Tensor output(const Call& call, const Tensor& y) const;
  static Tensor state(const Call& call, const Tensor& h);
  /// Puts a last state of packed sequences into the caller's order.
  static Tensor state(const PackedSequence& input, const Tensor& h);

 private:
  void check_input(const Tensor& x) const;
  /// Appends zeros for states that are not given, of `batch` sequences; checks the others.
  void check_states(Call& call, int64_t batch, size_t count, int64_t dim) const;

  std::string op_;
};
VESTA_API LSTMOptions sizes_of(const GRUOptions& options);
VESTA_API LSTMOptions sizes_of(const RNNOptions& options);
}  // namespace detail

/// A recurrent layer with gates and a cell: c = f * c + i * g, h = o * tanh(c) (Hochreiter and Schmidhuber 1997). Gives
/// the outputs [L, N, directions * H] and the last states ([layers * directions, N, H], [..., hidden_size]).
class VESTA_API LSTM : public LayerOf<LSTM, LSTMOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(LSTM)
  std::tuple<Tensor, LSTMState> forward(const Tensor& input, const std::optional<LSTMState>& hx = {});
  /// Does the same for sequences of different lengths; the states are in the order of the unpacked ones.
  std::tuple<PackedSequence, LSTMState> forward_with_packed_input(const PackedSequence& input,
                                                                  const std::optional<LSTMState>& hx = {});
  void reset_parameters() { recurrence_.reset_parameters(); }

 private:
  detail::Recurrence recurrence_;
};

/// A recurrent layer with two gates: h = (1 - z) * n + z * h (Cho et al. 2014). Gives the outputs [L, N, directions *
/// hidden_size] and the last state [layers * directions, N, hidden_size].
class VESTA_API GRU : public LayerOf<GRU, GRUOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(GRU)
  TensorPair forward(const Tensor& input, MaybeTensor hx = {});
  /// Does the same for sequences of different lengths; the states are in the order of the unpacked ones.
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& input, MaybeTensor hx = {});
  void reset_parameters() { recurrence_.reset_parameters(); }

 private:
  detail::Recurrence recurrence_;
};

/// A recurrent layer h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh (Elman 1990). Results as GRU's.
class VESTA_API RNN : public LayerOf<RNN, RNNOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(RNN)
  TensorPair forward(const Tensor& input, MaybeTensor hx = {});
  /// Does the same for sequences of different lengths; the states are in the order of the unpacked ones.
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& input, MaybeTensor hx = {});
  void reset_parameters() { recurrence_.reset_parameters(); }

 private:
  detail::Recurrence recurrence_;
};

struct RecurrentCellOptions {
  static constexpr size_t required = 2;
  int64_t input_size, hidden_size;
  bool bias = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(input_size, hidden_size, bias)
  static constexpr std::string_view shown = "{input_size}, {hidden_size}[, bias={bias}]";
};
struct RNNCellOptions {
  static constexpr size_t required = 2;
  int64_t input_size, hidden_size;
  bool bias = true;
  std::string nonlinearity = "tanh";  // or "relu"
  DType dtype = DType::float32;
  VESTA_FIELDS(input_size, hidden_size, bias, nonlinearity)
  static constexpr std::string_view shown = "{input_size}, {hidden_size}[, bias={bias}][, nonlinearity={nonlinearity}]";
};

namespace detail {
/// The parameters of one step, and the shapes of its input and states.
class VESTA_API RecurrentCell {
 public:
  RecurrentCell(Module& module, std::string op, int64_t gates, const RecurrentCellOptions& options);
  void reset_parameters();
  /// Returns the state, or zeros for none, as [N, hidden_size].
  Tensor state(const Tensor& input, MaybeTensor given) const;
  /// Returns the input as [N, input_size].
  Tensor batched(const Tensor& input) const;

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 private:
  std::string op_;
  int64_t hidden_size_;
};
}  // namespace detail

/// One step of LSTM: input [N, input_size] or [input_size], states (h, c) [N, hidden_size]; gives the new states.
class VESTA_API LSTMCell : public LayerOf<LSTMCell, RecurrentCellOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(LSTMCell)
  LSTMState forward(const Tensor& input, const std::optional<LSTMState>& hx = {});
  void reset_parameters() { cell_.reset_parameters(); }

 private:
  detail::RecurrentCell cell_;
};
/// One step of GRU.
class VESTA_API GRUCell : public LayerOf<GRUCell, RecurrentCellOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(GRUCell)
  Tensor forward(const Tensor& input, MaybeTensor hx = {});
  void reset_parameters() { cell_.reset_parameters(); }

 private:
  detail::RecurrentCell cell_;
};
/// One step of RNN.
class VESTA_API RNNCell : public LayerOf<RNNCell, RNNCellOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(RNNCell)
  Tensor forward(const Tensor& input, MaybeTensor hx = {});
  void reset_parameters() { cell_.reset_parameters(); }

 private:
  detail::RecurrentCell cell_;
};

}  // namespace vesta::nn
