// Losses: cross-entropy, likelihoods of classes, and sums of terms.
#include <vesta/autograd/rules/tensor_math.h>

#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/loss_terms.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/activation.h>
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
    return _cross_entropy_backward(g[0], input(), target(), weight(), exp_sums(), {}, ignore_index, smoothing);
  }
};

struct CrossEntropyMeanRule {
  Saved input, target, weight, exp_sums, total;
  int64_t ignore_index = -100;
  double smoothing = 0;
  static constexpr unsigned results = 0b001;
  static CrossEntropyMeanRule save(const TensorTriple& r, const Tensor& input, const Tensor& target,
                                   const Tensor& weight, int64_t ignore_index, double smoothing, MaybeDType,
                                   Needs needs) {
    VESTA_CHECK(!needs[2], not_implemented,
                "cross_entropy: expected class weights that require no grad. Use weight.detach().");
    const auto& [mean, sums, total] = r;
    return {Saved(input), Saved(target), Saved(weight), Saved(sums), Saved(total), ignore_index, smoothing};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    const Tensor numbers = target(), rows = expand(g[0], IntList(numbers.sizes()));
    return _cross_entropy_backward(rows, input(), numbers, weight(), exp_sums(), total(), ignore_index, smoothing);
  }
};

/// The loss of a row is -sum_c t_c log p_c with t_c = w_c ((1 - s) [c = target] + s / C), 0 for an ignored row; hence
/// d loss / d x_c = sum(t) p_c - t_c, with p = softmax(x).
Tensor cross_entropy_backward_formula(const Tensor& g, const Tensor& input, const Tensor& target, const Tensor& weight,
                                      const Tensor& sums, const Tensor& total, int64_t ignore_index, double smoothing) {
  if (total.defined()) {
    const Tensor rows = (g / total).to(g.dtype());
    return cross_entropy_backward_formula(rows, input, target, weight, sums, Tensor(), ignore_index, smoothing);
  }
  if (g.dtype() != input.dtype()) {  // 16-bit logits of a float32 loss
    return cross_entropy_backward_formula(g, input.to(g.dtype()), target, weight, sums, Tensor(), ignore_index,
                                          smoothing)
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

struct NllLossRule {
  Saved target, weight, total;
  int64_t ignore_index = -100;
  Dims sizes;
  static constexpr unsigned results = 0b01;
  static NllLossRule save(const TensorPair& r, const Tensor& input, const Tensor& target, const Tensor& weight,
                          int64_t ignore_index, int64_t, Needs needs) {
    VESTA_CHECK(!needs[2], not_implemented,
                "nll_loss: expected class weights that require no grad. Use weight.detach().");
    return {Saved(target), Saved(weight), Saved(std::get<1>(r)), ignore_index, Dims(input.sizes())};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return _nll_loss_backward(g[0], target(), weight(), total(), ignore_index, IntList(sizes));
  }
};

struct LossSumRule {
  Saved input, target;
  int64_t term = 0;
  double first = 0, second = 0, divisor = -1;
  static LossSumRule save(const Tensor&, const Tensor& input, const Tensor& target, int64_t term, double first,
                          double second, double divisor, Needs) {
    return {Saved(input), Saved(target), term, first, second, divisor};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    const int64_t wanted = int64_t(needs[0]) | int64_t(needs[1]) << 1;
    auto [of_input, of_target] = _loss_sum_backward(g, input(), target(), term, first, second, divisor, wanted);
    return {of_input, of_target};
  }
};

/// The gradients of a sum of terms, by the formulas of their struct in ops.
TensorPair loss_sum_backward_formula(const Tensor& grad, const Tensor& x, const Tensor& t, int64_t term, double first,
                                     double second, double divisor, int64_t wanted) {
  const DType wide = compute_type(x.dtype());  // 16-bit floats would be rounded after every step
  const Tensor a = x.to(wide), b = t.to(wide);
  const Tensor g = expand((divisor < 0 ? grad : grad / Scalar(divisor)).to(wide), IntList(x.sizes()));
  const double params[] = {first, second};
  TensorPair r;
  visit_term(LossTerm(term), [&]<class D, class P>() {
    if (wanted & 1) std::get<0>(r) = gradient_of_term<D, P, 0>(g, a, b, params).to(x.dtype());
    if (wanted & 2) std::get<1>(r) = gradient_of_term<D, P, 1>(g, a, b, params).to(t.dtype());
  });
  return r;
}

}  // namespace

void register_loss() {
  record<ops::_cross_entropy, CrossEntropyRule>();
  record_composite<ops::_cross_entropy_backward, &cross_entropy_backward_formula>();
  record<ops::_cross_entropy_mean, CrossEntropyMeanRule>();
  record<ops::_nll_loss, NllLossRule>();
  record<ops::_loss_sum, LossSumRule>();
  record_composite<ops::_loss_sum_backward, &loss_sum_backward_formula>();
}

}  // namespace vesta::autograd::rules
