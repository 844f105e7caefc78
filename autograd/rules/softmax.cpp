// Softmax and log-softmax. With y = softmax(x): dx = y (g - sum(g y)); with y = log_softmax(x): dx = g - e^y sum(g).
// Both come from the fused op _softmax_backward, whose own gradient is that of the formula.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/softmax.h>

namespace vesta::autograd::rules {
namespace {

template <bool log>
struct SoftmaxRule {
  Saved y;
  int64_t dim = 0;
  static SoftmaxRule save(const Tensor& y, const Tensor&, int64_t dim, Needs) { return {Saved::result(y), dim}; }
  Tensor operator()(const Tensor& g, Needs) const { return _softmax_backward(g, y(), dim, log); }
};

Tensor softmax_backward_formula(const Tensor& g, const Tensor& y, int64_t dim, bool log) {
  // 16-bit floats would be rounded after every step, which the fused op does not do.
  if (const DType wide = compute_type(y.dtype()); wide != y.dtype())
    return softmax_backward_formula(g.to(wide), y.to(wide), dim, log).to(y.dtype());
  if (log) return g - exp(y) * sum(g, dim, true);
  return y * (g - sum(g * y, dim, true));
}

}  // namespace

void register_softmax() {
  record<ops::_softmax, SoftmaxRule<false>>();
  record<ops::_log_softmax, SoftmaxRule<true>>();
  record_composite<ops::_softmax_backward, &softmax_backward_formula>();
}

}  // namespace vesta::autograd::rules
