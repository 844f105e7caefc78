// Recurrent networks over whole sequences: the step, and the bodies of the ops that run a layer in one direction. The
// bodies go step by step; they are what second derivatives are taken of, so that gradients are functions of the
// operands alone and not of what kernels save.
#include <vesta/core/ops/recurrence.h>

#include <vector>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/recurrence.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_RECURRENCE)

namespace recurrence {
namespace {

/// The gates of a GRU after their functions: reset, update, the new part, and what the state contributes to that.
struct GruGates {
  Tensor reset, update, fresh, from_state;
  GruGates(const Tensor& x, const Tensor& h, const Weights& w) {
    const int64_t n = x.size(0);
    const TensorVector from_x = unbind(view(x, {n, 3, h.size(1)}), 1);
    const TensorVector from_h = unbind(view(linear(h, w.hh, w.b_hh), {n, 3, h.size(1)}), 1);
    reset = sigmoid(add(from_x[0], from_h[0])), update = sigmoid(add(from_x[1], from_h[1]));
    from_state = from_h[2];
    fresh = tanh(add(from_x[2], mul(reset, from_state)));
  }
};

Tensor gates_of_step(const Tensor& x, const Tensor& h, const Weights& w) { return addmm(x, h, transpose(w.hh, 0, 1)); }

}  // namespace

State step(Kind kind, const Tensor& x, const State& before, const Weights& w) {
  if (kind == Kind::tanh) return {tanh(gates_of_step(x, before.h, w)), {}};
  if (kind == Kind::relu) return {relu(gates_of_step(x, before.h, w)), {}};
  if (kind == Kind::gru) {  // Cho et al. 2014, with the reset gate behind the product
    const GruGates g(x, before.h, w);
    return {add(g.fresh, mul(g.update, sub(before.h, g.fresh))), {}};
  }
  const Tensor gates = gates_of_step(x, before.h, w);
  const DType d = promote(gates.dtype(), before.c.dtype());
  const auto [out, c, activations] = _lstm_cell(gates.to(d), before.c.to(d));
  return {w.hr.defined() ? linear(out, w.hr) : out, c};
}

namespace {

/// Returns the states of sequences [first, end).
State rows(const State& s, int64_t first, int64_t end) {
  if (first == 0 && end == s.h.size(0)) return s;
  return {narrow(s.h, 0, first, end - first), s.c.defined() ? narrow(s.c, 0, first, end - first) : s.c};
}
State joined(const std::vector<State>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Tensor> h, c;
  for (const State& s : parts) {
    h.push_back(s.h);
    if (s.c.defined()) c.push_back(s.c);
  }
  return {cat(h, 0), c.empty() ? Tensor() : cat(c, 0)};
}

}  // namespace

State Layer::forward(const State& start, std::vector<Tensor>& outputs, std::vector<State>* before) const {
  State s = start;
  std::vector<State> ended;
  for (size_t t = 0; t < inputs.size(); ++t) {
    if (const int64_t n = s.h.size(0); sizes[t] < n) {
      ended.push_back(rows(s, sizes[t], n));
      s = rows(s, 0, sizes[t]);
    }
    if (before) before->push_back(s);
    s = step(kind, inputs[t], s, w);
    outputs.push_back(s.h);
  }
  ended.push_back(s);
  std::ranges::reverse(ended);
  return joined(ended);
}
State Layer::backward(const State& start, std::vector<Tensor>& outputs, std::vector<State>* before) const {
  if (inputs.empty()) return start;
  State s = rows(start, 0, sizes.back());
  for (size_t t = inputs.size(); t-- > 0;) {
    if (const int64_t n = s.h.size(0); sizes[t] > n) s = joined({s, rows(start, n, sizes[t])});
    if (before) before->push_back(s);
    s = step(kind, inputs[t], s, w);
    outputs.push_back(s.h);
  }
  std::ranges::reverse(outputs);
  if (before) std::ranges::reverse(*before);
  return s;
}

State Layer::run(const State& start, bool reverse, std::vector<Tensor>& outputs, std::vector<State>* before) const {
  return reverse ? backward(start, outputs, before) : forward(start, outputs, before);
}

bool in_one_kernel(Kind kind, const Tensor& x, const State& start, const Weights& w) {
  const DeviceType device = x.device().type();
  if (device == DeviceType::cuda) {
    if (!is_float(x.dtype()) || (autocast::active() && autocast::mode(device).enabled)) return false;
  } else {
    if ((device != DeviceType::cpu && device != DeviceType::meta) || autocast::mode(device).enabled) return false;
    if (x.dtype() != DType::float32 && x.dtype() != DType::float64) return false;
  }
  if (w.hr.defined() || x.numel() == 0 || start.h.numel() == 0) return false;
  const int64_t width = start.h.size(-1);
  for (const Tensor* t : {&start.h, &start.c, &w.hh, &w.b_hh}) {
    if (t->defined() && (t->dtype() != x.dtype() || t->device() != x.device())) return false;
  }
  if (kind == Kind::gru && w.b_hh.defined() && (w.b_hh.dim() != 1 || w.b_hh.size(0) != x.size(-1))) return false;
  // What does not fit is refused by the product of a step, which names the sizes.
  return x.size(-1) == gates_of(kind) * width && w.hh.dim() == 2 && w.hh.size(0) == x.size(-1) && w.hh.size(1) == width;
}

void check(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias, IntSpan sizes,
           int64_t kind) {
  constexpr const char* op = "_recurrence";
  VESTA_CHECK(kind >= 0 && kind <= int64_t(Kind::relu), value, op, ": expected a kind from 0 to 3, got ", kind, ".");
  const int64_t gates = gates_of(Kind(kind));
  const bool cell = Kind(kind) == Kind::lstm;
  VESTA_CHECK(x.dim() == 2 && h.dim() == 2 && weight.dim() == 2 && x.size(1) == gates * h.size(1) &&
                  weight.size(0) == x.size(1) && weight.size(1) == h.size(1) && c.defined() == cell &&
                  (!cell || std::ranges::equal(c->sizes(), h.sizes())) &&
                  (!bias.defined() || (bias->dim() == 1 && bias->size(0) == x.size(1))),
              runtime, op, ": expected x [R, ", gates, " H], states [N, H], weight [", gates, " H, H] and bias [",
              gates, " H], got ", x.sizes(), ", ", h.sizes(), ", ", weight.sizes(), " and ",
              bias.defined() ? bias->sizes() : IntSpan(), ".");
  check_floating(x, op);
  VESTA_CHECK(h.dtype() == x.dtype() && weight.dtype() == x.dtype() && (!cell || c->dtype() == x.dtype()) &&
                  (!bias.defined() || bias->dtype() == x.dtype()),
              type, op, ": expected operands of one dtype, got ", x.dtype(), ", ", h.dtype(), " and ", weight.dtype(),
              ".");
  int64_t rows = 0;
  for (size_t t = 0; t < sizes.size(); ++t) {
    VESTA_CHECK(sizes[t] > 0 && sizes[t] <= (t ? sizes[t - 1] : h.size(0)), runtime, op,
                ": expected sizes that are positive, do not grow and begin with at most ", h.size(0), ", got ", sizes,
                ".");
    rows += sizes[t];
  }
  VESTA_CHECK(rows == x.size(0), runtime, op, ": expected x of ", rows, " rows, the sum of sizes, got ", x.sizes(),
              ".");
}

namespace {

/// Returns t with its first rows replaced.
Tensor with_rows(const Tensor& t, const Tensor& first) {
  if (!t.defined() || first.size(0) == t.size(0)) return first;
  return cat(TensorVector{first, narrow(t, 0, first.size(0), t.size(0) - first.size(0))}, 0);
}
State with_rows(const State& s, const State& first) { return {with_rows(s.h, first.h), with_rows(s.c, first.c)}; }
Tensor first_rows(const Tensor& t, int64_t n) { return !t.defined() || t.size(0) == n ? t : narrow(t, 0, 0, n); }
State first_rows(const State& s, int64_t n) { return {first_rows(s.h, n), first_rows(s.c, n)}; }

/// All steps of a layer, in the order of time, with the states before each.
struct Steps {
  Kind kind;
  Weights w;
  TensorVector x;
  std::vector<State> before;
  TensorVector out;
  State last;

  Steps(const Tensor& inputs, const State& start, const Tensor& weight, const Tensor& bias, IntSpan sizes, int64_t kind,
        bool reverse)
      : kind(Kind(kind)), w{{}, weight, {}, bias, {}}, x(split(inputs, IntList(sizes), 0)) {
    last = Layer{this->kind, w, x, sizes}.run(start, reverse, out, &before);
  }
};

/// The gradients of one step: of x, of its product with the state's weight, and of the states before it, without what
/// goes through the product.
struct StepGradients {
  Tensor x, product;
  State before;
};

Tensor slope_of_sigmoid(const Tensor& y) { return mul(y, sub(wrapped(1.0), y)); }
Tensor slope_of_tanh(const Tensor& y) { return sub(wrapped(1.0), square(y)); }

StepGradients gradients_of_step(const Steps& s, size_t t, const State& g) {
  const State& before = s.before[t];
  if (s.kind == Kind::lstm) {
    const Tensor gates = gates_of_step(s.x[t], before.h, s.w);
    const Tensor activations = std::get<2>(_lstm_cell(gates, before.c));
    const auto [of_gates, of_c] = _lstm_cell_backward(gates, before.c, activations, g.h, g.c);
    return {of_gates, of_gates, {{}, of_c}};
  }
  if (s.kind == Kind::gru) {
    const GruGates a(s.x[t], before.h, s.w);
    const Tensor of_fresh = mul(mul(g.h, sub(wrapped(1.0), a.update)), slope_of_tanh(a.fresh));
    const Tensor of_update = mul(mul(g.h, sub(before.h, a.fresh)), slope_of_sigmoid(a.update));
    const Tensor of_reset = mul(mul(of_fresh, a.from_state), slope_of_sigmoid(a.reset));
    return {cat(TensorVector{of_reset, of_update, of_fresh}, 1),
            cat(TensorVector{of_reset, of_update, mul(of_fresh, a.reset)}, 1),
            {mul(g.h, a.update), {}}};
  }
  const Tensor y = s.out[t];
  const Tensor of_x = s.kind == Kind::tanh ? mul(g.h, slope_of_tanh(y)) : where(le(y, wrapped(0.0)), wrapped(0.0), g.h);
  return {of_x, of_x, {}};
}

}  // namespace
}  // namespace recurrence

RecurrenceResults _recurrence_composite(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight,
                                        MaybeTensor bias, IntList sizes, int64_t kind, bool reverse) {
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  const recurrence::Steps s(x, {h, Tensor(*c)}, weight, Tensor(*bias), sizes, kind, reverse);
  return {cat(s.out, 0), s.last.h, s.last.c, Tensor(), Tensor()};
}

RecurrenceGradients _recurrence_backward_composite(MaybeTensor grad_out, MaybeTensor grad_h, MaybeTensor grad_c,
                                                   const Tensor& x, const Tensor& h, MaybeTensor c,
                                                   const Tensor& weight, MaybeTensor bias, const Tensor&, MaybeTensor,
                                                   MaybeTensor, IntList sizes, int64_t kind, bool reverse) {
  using namespace recurrence;
  check(x, h, c, weight, bias, sizes, kind);
  const autocast::Pause pause;  // gradients are those of what forward computed
  const Steps s(x, {h, Tensor(*c)}, weight, Tensor(*bias), sizes, kind, reverse);
  State g{grad_h.defined() ? *grad_h : zeros_like(h), Tensor()};
  if (c.defined()) g.c = grad_c.defined() ? *grad_c : zeros_like(*c);
  const TensorVector of_out = grad_out.defined() ? split(*grad_out, sizes, 0) : TensorVector();
  TensorVector of_x(s.x.size());
  Tensor of_weight, of_bias;
  const auto accumulate = [](Tensor& sum, const Tensor& t) { sum = sum.defined() ? add(sum, t) : t; };
  for (size_t i = s.x.size(); i-- > 0;) {
    const size_t t = reverse ? s.x.size() - 1 - i : i;
    State here = first_rows(g, sizes[t]);
    if (!of_out.empty()) here.h = add(here.h, of_out[t]);
    StepGradients of = gradients_of_step(s, t, here);
    of_x[t] = of.x;
    accumulate(of_weight, matmul(transpose(of.product, 0, 1), s.before[t].h));
    if (bias.defined()) accumulate(of_bias, sum(of.product, IntList{0}));
    const Tensor through = matmul(of.product, weight);
    of.before.h = of.before.h.defined() ? add(of.before.h, through) : through;
    g = with_rows(g, of.before);
  }
  return {cat(of_x, 0), g.h, g.c, of_weight, of_bias};
}

}  // namespace vesta
