// Softmax and log-softmax. With y = softmax(x): dx = y (g - sum(g y)); with y = log_softmax(x): dx = g - e^y sum(g).
// Both come from the fused op softmax_gradient, whose own gradient is that of the formula.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>

namespace vesta::autograd::rules {
namespace {

template <bool log>
struct SoftmaxRule {
  Saved y;
  int64_t dim = 0;
  static SoftmaxRule save(const Tensor& y, const Tensor&, int64_t dim, Needs) { return {Saved::result(y), dim}; }
  Tensor operator()(const Tensor& g, Needs) const { return softmax_gradient(g, y(), dim, log); }
};

Tensor softmax_gradient_formula(const Tensor& g, const Tensor& y, int64_t dim, bool log) {
  if (log) return g - exp(y) * sum(g, dim, true);
  return y * (g - sum(g * y, dim, true));
}

}  // namespace

void register_softmax() {
  record<ops::softmax_float, SoftmaxRule<false>>();
  record<ops::log_softmax_float, SoftmaxRule<true>>();
  record_composite<ops::softmax_gradient, &softmax_gradient_formula>();
}

}  // namespace vesta::autograd::rules
