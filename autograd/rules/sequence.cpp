// The step of an LSTM (Hochreiter and Schmidhuber 1997).
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/sequence.h>

namespace vesta::autograd::rules {
namespace {

struct LstmCellRule {
  Saved gates, cx, activations;
  static constexpr unsigned results = 0b011;
  static LstmCellRule save(const TensorTriple& r, const Tensor& gates, const Tensor& cx, Needs) {
    return {Saved(gates), Saved(cx), Saved(std::get<2>(r))};
  }
  Grads<2> operator()(const GradList& g, Needs) const {
    if (!g[0].defined() && !g[1].defined()) return {};
    auto [of_gates, of_cx] = _lstm_cell_backward(gates(), cx(), activations(), g[0], g[1]);
    return {of_gates, of_cx};
  }
};

}  // namespace

void register_sequence() { record<ops::_lstm_cell, LstmCellRule>(); }

}  // namespace vesta::autograd::rules
