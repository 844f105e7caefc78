#include <vesta/core/ops/sequence.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/sequence.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/recurrence.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SEQUENCE)

// ---- Recurrent networks ----

namespace {

using recurrence::Kind;
using recurrence::Layer;
using recurrence::State;
using recurrence::step;
using recurrence::Weights;

/// The dtype that autocast gives a recurrent network, whose operands are cast before its first step. PyTorch's networks
/// of CUDA compute in it altogether. On the CPU their parts are cast one by one, and there is none.
class LowerDType {
 public:
  explicit LowerDType(const Tensor& input) : dtype_(autocast::mode(input.device().type()).dtype) {
    const DeviceType device = input.device().type();
    any_ = device == DeviceType::cuda && autocast::active() && autocast::mode(device).enabled;
  }
  explicit operator bool() const { return any_; }
  Tensor operator()(const Tensor& t) const {
    const bool casts = t.defined() && is_float(t.dtype()) && t.dtype() != DType::float64 && t.dtype() != dtype_;
    return casts ? autocast::cast(t, dtype_, true) : t;
  }
  State operator()(const State& s) const { return {(*this)(s.h), (*this)(s.c)}; }
  TensorVector operator()(TensorList l) const {
    TensorVector r;
    for (const Tensor& t : l) r.push_back((*this)(t));
    return r;
  }

 private:
  DType dtype_;
  bool any_;
};

/// Returns what the inputs of all steps contribute, with the biases that are only added.
Tensor input_part(Kind kind, const Tensor& x, const Weights& w) {
  const bool joined = kind != Kind::gru && w.b_ih.defined();
  return linear(x, w.ih, joined ? add(w.b_ih, w.b_hh) : w.b_ih);
}

/// A whole network: its options, and how its steps lie in memory.
struct Network {
  const char* op;
  Kind kind;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;

  Weights weights(TensorList params, int64_t number, bool projects) const {
    const size_t each = (has_biases ? 4 : 2) + projects;
    const int64_t directions = bidirectional ? 2 : 1;
    VESTA_CHECK(int64_t(params.size()) == num_layers * directions * int64_t(each), runtime, op, ": expected ",
                num_layers * directions * int64_t(each), " weights and biases for ", num_layers, " layers, got ",
                params.size(), " (params).");
    const Tensor* p = params.data() + size_t(number) * each;
    Weights w{p[0], p[1], {}, {}, {}};
    if (has_biases) w.b_ih = p[2], w.b_hh = p[3];
    if (projects) w.hr = p[each - 1];
    return w;
  }

  /// Cuts a sequence into steps.
  static std::vector<Tensor> steps_of(const Tensor& x, const std::vector<int64_t>& sizes, bool packed) {
    if (!packed) return unbind(x, 0);
    return split(x, sizes, 0);
  }

  /// Runs one layer in one direction. Returns the outputs in the form of x, [T, N, *] or packed, and the last states.
  std::pair<Tensor, State> run_layer(const Tensor& x, const State& start, const Weights& w,
                                     const std::vector<int64_t>& sizes, bool packed, bool reverse) const {
    if (recurrence::in_one_kernel(kind, x, start, w)) {
      Tensor bias = kind == Kind::gru ? w.b_hh : Tensor();  // others have joined it to the inputs' part
      // Only a second gradient needs the bias: a program may write to its own until then.
      if (bias.defined() && layer_state.grad_enabled) bias = clone(bias);
      const auto [y, h, last_c, activations, cells] = _recurrence(packed ? x : reshape(x, {-1, x.size(-1)}), start.h,
                                                                  start.c, w.hh, bias, sizes, int64_t(kind), reverse);
      return {packed ? y : reshape(y, {x.size(0), x.size(1), -1}), {h, last_c}};
    }
    const std::vector<Tensor> inputs = steps_of(x, sizes, packed);
    std::vector<Tensor> outputs;
    const State end = Layer{kind, w, inputs, sizes}.run(start, reverse, outputs);
    return {packed ? cat(outputs, 0) : stack(outputs, 0), end};
  }

  /// Runs the network over x: [T, N, I], or packed [sum of sizes, I]. Returns the outputs and the last states.
  TensorTriple run(Tensor x, const Tensor& h, const Tensor& c, TensorList params, const std::vector<int64_t>& sizes,
                   bool packed) const {
    if (const LowerDType lower(x); lower) {
      const TensorVector cast_params = lower(params);
      const autocast::Pause pause;
      return run(lower(x), lower(h), lower(c), cast_params, sizes, packed);
    }
    const int64_t directions = bidirectional ? 2 : 1;
    check_floating(x, op);
    VESTA_CHECK(num_layers > 0, runtime, op, ": num_layers must be greater than zero, got ", num_layers, ".");
    VESTA_CHECK(!sizes.empty(), runtime, op, ": Expected sequence length to be larger than 0 in RNN.");
    VESTA_CHECK(dropout >= 0 && dropout <= 1, value, op, ": expected a dropout in [0, 1], got ", dropout, ".");
    for (const Tensor* state : {&h, &c}) {
      VESTA_CHECK(!state->defined() || (state->dim() == 3 && state->size(0) == num_layers * directions &&
                                        state->size(1) == sizes.front()),
                  runtime, op, ": expected states [", num_layers * directions, ", ", sizes.front(), ", H], got ",
                  state->defined() ? state->sizes() : IntSpan(), " (hx).");
    }
    const bool projects = c.defined() && h.size(2) != c.size(2);
    const TensorVector hs = unbind(h, 0), cs = c.defined() ? unbind(c, 0) : TensorVector();
    std::vector<Tensor> last_h, last_c;
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      std::vector<Tensor> both;
      for (int64_t d = 0; d < directions; ++d) {
        const int64_t number = layer * directions + d;
        const Weights w = weights(params, number, projects);
        const State start{hs[size_t(number)], c.defined() ? cs[size_t(number)] : Tensor()};
        auto [y, end] = run_layer(input_part(kind, x, w), start, w, sizes, packed, d == 1);
        both.push_back(y);
        last_h.push_back(end.h);
        if (end.c.defined()) last_c.push_back(end.c);
      }
      x = both.size() == 1 ? both[0] : cat(both, -1);
      // The gradient needs the outputs of a kernel as they are, and a program may write to those that it gets.
      if (both.size() == 1 && layer + 1 == num_layers && layer_state.grad_enabled && x.requires_grad()) x = clone(x);
      if (train && dropout > 0 && layer + 1 < num_layers) x = _dropout(x, dropout, true);
    }
    return {x, stack(last_h, 0), last_c.empty() ? Tensor() : stack(last_c, 0)};
  }

  TensorTriple run_padded(const Tensor& input, const Tensor& h, const Tensor& c, TensorList params,
                          bool batch_first) const {
    VESTA_CHECK(input.dim() == 3, runtime, op, ": expected an input of 3 dimensions, got ", input.sizes(), ".");
    const Tensor x = batch_first ? transpose(input, 0, 1) : input;
    const std::vector<int64_t> sizes(size_t(x.size(0)), x.size(1));
    auto [y, last_h, last_c] = run(x, h, c, params, sizes, false);
    return {batch_first ? transpose(y, 0, 1) : y, last_h, last_c};
  }

  TensorTriple run_packed(const Tensor& data, const Tensor& batch_sizes, const Tensor& h, const Tensor& c,
                          TensorList params) const {
    VESTA_CHECK(data.dim() == 2 && batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::int64 &&
                    batch_sizes.device().type() == DeviceType::cpu,
                runtime, op, ": expected packed data [sum of batch_sizes, I] and int64 batch_sizes on the CPU, got ",
                data.sizes(), " and ", batch_sizes.sizes(), " ", batch_sizes.dtype(), " on ", batch_sizes.device(),
                ".");
    const Tensor host = contiguous(batch_sizes);
    const std::vector<int64_t> sizes(host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + host.numel());
    int64_t total = 0;
    for (size_t t = 0; t < sizes.size(); ++t) {
      VESTA_CHECK(sizes[t] > 0 && (t == 0 || sizes[t] <= sizes[t - 1]), runtime, op,
                  ": expected batch_sizes that are positive and do not grow, got ", IntSpan(sizes), ".");
      total += sizes[t];
    }
    VESTA_CHECK(total == data.size(0), runtime, op, ": expected data of ", total, " rows, the sum of batch_sizes, got ",
                data.sizes(), ".");
    return run(data, h, c, params, sizes, true);
  }
};

/// Checks the two states of an LSTM.
void check_pair(TensorList hx, const char* op) {
  VESTA_CHECK(hx.size() == 2, runtime, op, " expects two hidden states, got ", hx.size(), " (hx).");
}

TensorPair first_two(const TensorTriple& r) { return {std::get<0>(r), std::get<1>(r)}; }

/// Raises unless the operands of one step fit together.
void check_cell(Kind kind, const char* op, const Tensor& input, const State& state, const Tensor& w_ih,
                const Tensor& w_hh) {
  VESTA_CHECK(input.dim() == 2 && state.h.dim() == 2, runtime, op, ": expected input [N, I] and hx [N, H], got ",
              input.sizes(), " and ", state.h.sizes(), ".");
  const int64_t n = input.size(0), hidden = state.h.size(1);
  const int64_t gates = kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;
  VESTA_CHECK(state.h.size(0) == n, runtime, op, ": expected a state of the input's batch size ", n, ", got ",
              state.h.sizes(), " (hx).");
  VESTA_CHECK(!state.c.defined() || std::ranges::equal(state.c.sizes(), state.h.sizes()), runtime, op,
              ": expected two states of one shape, got ", state.h.sizes(), " and ", state.c.sizes(), " (hx).");
  const auto check_weight = [&](const Tensor& w, int64_t columns, const char* name) {
    VESTA_CHECK(w.dim() == 2 && w.size(0) == gates * hidden && w.size(1) == columns, runtime, op,
                ": expected a weight of shape [", gates * hidden, ", ", columns, "], got ", w.sizes(), " (", name,
                ").");
  };
  check_weight(w_ih, input.size(1), "w_ih");
  check_weight(w_hh, hidden, "w_hh");
}

/// One step of a network, the biases of which may be missing.
State cell(Kind kind, const char* op, const Tensor& input, const State& state, const Tensor& w_ih, const Tensor& w_hh,
           const Tensor& b_ih, const Tensor& b_hh) {
  if (const LowerDType lower(input); lower) {
    const Tensor x = lower(input), w[] = {lower(w_ih), lower(w_hh), lower(b_ih), lower(b_hh)};
    const State before = lower(state);
    const autocast::Pause pause;
    return cell(kind, op, x, before, w[0], w[1], w[2], w[3]);
  }
  check_floating(input, op);
  check_cell(kind, op, input, state, w_ih, w_hh);
  VESTA_CHECK(b_ih.defined() == b_hh.defined(), runtime, op, ": expected both biases or none (b_ih, b_hh).");
  const Weights w{w_ih, w_hh, b_ih, b_hh, {}};
  const Tensor x = input_part(kind, input, w);
  const bool fused = kind == Kind::gru && x.device().type() == DeviceType::cuda && x.size(0) == state.h.size(0);
  if (fused && recurrence::in_one_kernel(kind, x, state, w)) {  // a layer of one step
    const int64_t rows[] = {x.size(0)};
    return {std::get<1>(_recurrence(x, state.h, {}, w.hh, w.b_hh, IntList(rows), int64_t(kind), false)), {}};
  }
  return step(kind, x, state, w);
}

}  // namespace

TensorTriple lstm_composite(const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers,
                            double dropout, bool train, bool bidirectional, bool batch_first) {
  check_pair(hx, "lstm");
  auto [y, h, c] = Network{"lstm", Kind::lstm, has_biases, num_layers, dropout, train, bidirectional}.run_padded(
      input, hx[0], hx[1], params, batch_first);
  // On the CPU PyTorch has a kernel for whole sequences without projections, whose results are of the lower dtype.
  const DeviceType device = input.device().type();
  const bool lower = device == DeviceType::cpu && autocast::active() && autocast::mode(device).enabled;
  if (!lower || y.dtype() != DType::float32 || h.size(2) != c.size(2)) return {y, h, c};
  const DType d = autocast::mode(device).dtype;
  return {y.to(d), h.to(d), c.to(d)};
}
TensorTriple lstm_data_composite(const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params,
                                 bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  check_pair(hx, "lstm");
  return Network{"lstm", Kind::lstm, has_biases, num_layers, dropout, train, bidirectional}.run_packed(
      data, batch_sizes, hx[0], hx[1], params);
}
void check_lstm_cell(const Tensor& gates, const Tensor& cx) {
  check_floating(gates, "lstm");
  VESTA_CHECK(cx.dim() == 2 && gates.dim() == 2 && gates.size(0) == cx.size(0) && gates.size(1) == 4 * cx.size(1),
              runtime, "lstm: expected gates [N, 4 H] and a cell state [N, H], got ", gates.sizes(), " and ",
              cx.sizes(), ".");
  VESTA_CHECK(gates.dtype() == cx.dtype(), type, "lstm: expected gates and a cell state of one dtype, got ",
              gates.dtype(), " and ", cx.dtype(), ".");
}

namespace {

/// The gates of an LSTM after their functions, in the order of its weights.
struct Gates {
  Tensor input, forget, cell, output;
  explicit Gates(const Tensor& gates) {
    const TensorVector parts = unbind(view(gates, {gates.size(0), 4, -1}), 1);
    input = sigmoid(parts[0]), forget = sigmoid(parts[1]), cell = tanh(parts[2]), output = sigmoid(parts[3]);
  }
  Tensor state(const Tensor& cx) const { return add(mul(forget, cx), mul(input, cell)); }
};

/// Returns the slope of sigmoid where it has the value y.
Tensor sigmoid_slope(const Tensor& y) { return mul(y, sub(wrapped(1.0), y)); }

}  // namespace

TensorTriple _lstm_cell_composite(const Tensor& gates, const Tensor& cx) {
  check_lstm_cell(gates, cx);
  if (gates.numel() == 0) return {clone(cx), clone(cx), clone(gates)};
  const Gates g(gates);
  const Tensor c = g.state(cx);
  return {mul(g.output, tanh(c)), c, cat(TensorVector{g.input, g.forget, g.cell, g.output}, 1)};
}
TensorPair _lstm_cell_backward_composite(const Tensor& gates, const Tensor& cx, const Tensor&, MaybeTensor grad_h,
                                         MaybeTensor grad_c) {
  check_lstm_cell(gates, cx);
  if (gates.numel() == 0) return {zeros_like(gates), zeros_like(cx)};
  const Gates g(gates);
  const Tensor top = tanh(g.state(cx)), gh = grad_h.defined() ? *grad_h : zeros_like(cx);
  Tensor gc = mul(mul(gh, g.output), sub(wrapped(1.0), square(top)));
  if (grad_c.defined()) gc = add(gc, *grad_c);
  const Tensor of_input = mul(mul(gc, g.cell), sigmoid_slope(g.input)),
               of_forget = mul(mul(gc, cx), sigmoid_slope(g.forget)),
               of_cell = mul(mul(gc, g.input), sub(wrapped(1.0), square(g.cell))),
               of_output = mul(mul(gh, top), sigmoid_slope(g.output));
  return {cat(TensorVector{of_input, of_forget, of_cell, of_output}, 1), mul(gc, g.forget)};
}

TensorPair lstm_cell_composite(const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh,
                               MaybeTensor b_ih, MaybeTensor b_hh) {
  check_pair(hx, "lstm_cell");
  const State s = cell(Kind::lstm, "lstm_cell", input, {hx[0], hx[1]}, w_ih, w_hh, b_ih, b_hh);
  return {s.h, s.c};
}

// The networks with one state.
#define VESTA_RECURRENT(name, kind)                                                                                 \
  TensorPair name##_composite(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,            \
                              int64_t num_layers, double dropout, bool train, bool bidirectional,                   \
                              bool batch_first) {                                                                   \
    return first_two(Network{#name, kind, has_biases, num_layers, dropout, train, bidirectional}.run_padded(        \
        input, hx, {}, params, batch_first));                                                                       \
  }                                                                                                                 \
  TensorPair name##_data_composite(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,                 \
                                   TensorList params, bool has_biases, int64_t num_layers, double dropout,          \
                                   bool train, bool bidirectional) {                                                \
    return first_two(Network{#name, kind, has_biases, num_layers, dropout, train, bidirectional}.run_packed(        \
        data, batch_sizes, hx, {}, params));                                                                        \
  }                                                                                                                 \
  Tensor name##_cell_composite(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,       \
                               MaybeTensor b_ih, MaybeTensor b_hh) {                                                \
    return cell(kind, #name "_cell", input, {hx, {}}, w_ih, w_hh, b_ih, b_hh).h;                                    \
  }
VESTA_RECURRENT(gru, Kind::gru)
VESTA_RECURRENT(rnn_tanh, Kind::tanh)
VESTA_RECURRENT(rnn_relu, Kind::relu)
#undef VESTA_RECURRENT

Tensor bilinear_composite(const Tensor& input1, const Tensor& input2, const Tensor& weight, MaybeTensor bias) {
  constexpr const char* op = "bilinear";
  VESTA_CHECK(!is_bool(input1.dtype()), not_implemented, op, ": expected a number dtype, got bool (input1).");
  VESTA_CHECK(weight.dim() == 3 && input1.dim() >= 1 && input1.dim() == input2.dim(), runtime, op,
              ": expected a weight [O, I1, I2] and inputs of the same dimensions, got ", weight.sizes(), ", ",
              input1.sizes(), " and ", input2.sizes(), ".");
  const size_t lead = size_t(input1.dim() - 1);
  VESTA_CHECK(std::ranges::equal(input1.sizes().first(lead), input2.sizes().first(lead)) &&
                  input1.size(-1) == weight.size(1) && input2.size(-1) == weight.size(2),
              runtime, op, ": expected inputs [*, ", weight.size(1), "] and [*, ", weight.size(2), "], got ",
              input1.sizes(), " and ", input2.sizes(), ".");
  VESTA_CHECK(!bias.defined() || (bias->dim() == 1 && bias->size(0) == weight.size(0)), runtime, op,
              ": expected a bias [", weight.size(0), "], got ", bias.defined() ? bias->sizes() : IntSpan(), ".");
  const Tensor a = reshape(input1, {-1, weight.size(1)}), b = reshape(input2, {-1, weight.size(2)});
  // [M, O, I2], by one product over all outputs.
  const Tensor parts = reshape(matmul(a, reshape(permute(weight, {1, 0, 2}), {weight.size(1), -1})),
                               {a.size(0), weight.size(0), weight.size(2)});
  Tensor y = squeeze(matmul(parts, unsqueeze(b, 2)), 2);
  if (bias.defined()) y = add(y, *bias);
  Dims sizes(input1.sizes().first(lead));
  sizes.push_back(weight.size(0));
  return reshape(y, sizes);
}

}  // namespace vesta
