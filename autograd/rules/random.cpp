// Random numbers: draws do not depend on what they overwrite; dropout scales what it kept.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/overwritten.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/random.h>

namespace vesta::autograd::rules {
namespace {

struct DropoutRule {
  Saved mask;
  double scale = 1;
  static constexpr unsigned results = 0b01;
  static DropoutRule save(const TensorPair& r, const Tensor&, double p, bool train, Needs) {
    return {Saved(std::get<1>(r)), train && p < 1 ? 1 / (1 - p) : 1};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return native_dropout_backward(g[0], mask(), scale);
  }
};

}  // namespace

void register_random() {
  record_inplace<ops::uniform_, OverwrittenRule>();
  record_inplace<ops::normal_, OverwrittenRule>();
  record_inplace<ops::_random_, OverwrittenRule>();
  record_inplace<ops::bernoulli_, OverwrittenRule>();
  record_inplace<ops::exponential_, OverwrittenRule>();
  record_inplace<ops::geometric_, OverwrittenRule>();
  record_inplace<ops::cauchy_, OverwrittenRule>();
  record_inplace<ops::log_normal_, OverwrittenRule>();
  record<ops::bernoulli, OverwrittenRule>();
  record<ops::native_dropout, DropoutRule>();
}

}  // namespace vesta::autograd::rules
