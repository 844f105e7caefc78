// Connectionist temporal classification. A second derivative is that of the loss computed with other ops.
#include <vector>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/loss.h>

namespace vesta::autograd::rules {
namespace {

struct CtcLossRule {
  Saved log_probs, targets, alpha;
  Dims input_lengths, target_lengths;
  int64_t blank = 0;
  static constexpr unsigned results = 0b01;
  static CtcLossRule save(const TensorPair& r, const Tensor& log_probs, const Tensor& targets, IntTuple input_lengths,
                          IntTuple target_lengths, int64_t blank, Needs) {
    return {Saved(log_probs), Saved(targets), Saved(std::get<1>(r)), Dims(input_lengths), Dims(target_lengths), blank};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return _ctc_loss_backward(g[0], log_probs(), targets(), alpha(), IntTuple(input_lengths), IntTuple(target_lengths),
                              blank);
  }
};

Tensor ctc_loss_backward_formula(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor&,
                                 IntTuple input_lengths, IntTuple target_lengths, int64_t blank) {
  const Tensor x = requires_grad(log_probs) ? log_probs : log_probs.detach().set_requires_grad();
  const Tensor loss = ctc_loss_in_ops(x, targets, input_lengths, target_lengths, blank);
  return run_backward({loss}, {grad}, {.retain_graph = true, .create_graph = true, .accumulate = false}, {x})[0];
}

}  // namespace

void register_ctc() {
  record<ops::_ctc_loss, CtcLossRule>();
  record_composite<ops::_ctc_loss_backward, &ctc_loss_backward_formula>();
}

}  // namespace vesta::autograd::rules
