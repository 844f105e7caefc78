// Cross-entropy of logits and class numbers.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

struct CrossEntropyRule {
  Saved input, target, weight, exp_sums;
  int64_t ignore_index = -100;
  double smoothing = 0;
  static constexpr unsigned results = 0b01;
  static CrossEntropyRule save(const TensorPair& r, const Tensor& input, const Tensor& target, const Tensor& weight,
                               int64_t ignore_index, double smoothing, MaybeDType, Needs needs) {
    VESTA_CHECK(!needs[2], not_implemented,
                "cross_entropy: expected class weights that require no grad. Use weight.detach().");
    return {Saved(input), Saved(target), Saved(weight), Saved(std::get<1>(r)), ignore_index, smoothing};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return _cross_entropy_backward(g[0], input(), target(), weight(), exp_sums(), ignore_index, smoothing);
  }
};

/// The loss of a row is -sum_c t_c log p_c with t_c = w_c ((1 - s) [c = target] + s / C), 0 for an ignored row; hence
/// d loss / d x_c = sum(t) p_c - t_c, with p = softmax(x).
Tensor cross_entropy_backward_formula(const Tensor& g, const Tensor& input, const Tensor& target, const Tensor& weight,
                                      const Tensor& sums, int64_t ignore_index, double smoothing) {
  if (g.dtype() != input.dtype()) {  // 16-bit logits of a float32 loss
    return cross_entropy_backward_formula(g, input.to(g.dtype()), target, weight, sums, ignore_index, smoothing)
        .to(input.dtype());
  }
  Tensor goal, counted;
  {
    NoGrad off;
    counted = ne(target, ignore_index);
    Tensor row = unsqueeze(where(counted, target, wrapped(int64_t(0))).to(DType::int64), 1);
    goal = full(input.sizes(), smoothing / double(input.size(1)), input.dtype(), input.device());
    scatter_add_(goal, 1, row, full(row.sizes(), 1 - smoothing, input.dtype(), input.device()));
    if (weight.defined()) goal = goal * (input.dim() == 3 ? unsqueeze(weight, 1) : weight);
    counted = unsqueeze(counted, 1);
    goal = where(counted, goal, wrapped(0.0));
  }
  // Ignored rows have no gradient, whatever comes in: the mean of no rows is NaN.
  return where(counted, unsqueeze(g, 1), wrapped(0.0)) * (_softmax(input, 1) * sum(goal, 1, true) - goal);
}

}  // namespace

void register_loss() {
  record<ops::_cross_entropy, CrossEntropyRule>();
  record_composite<ops::_cross_entropy_backward, &cross_entropy_backward_formula>();
}

}  // namespace vesta::autograd::rules
