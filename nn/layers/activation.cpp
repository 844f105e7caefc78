#include <vesta/nn/layers/activation.h>

#include <vesta/nn/python_repr.h>

namespace vesta::nn {

std::string Softplus::extra_repr() const {
  return text("beta=", python_repr(options.beta), ", threshold=", python_repr(options.threshold));
}

Dropout::Dropout(double probability) : p(probability) {
  VESTA_CHECK(p >= 0 && p <= 1, value, "Dropout: dropout probability has to be between 0 and 1, but got ", p, ".");
}

std::string Dropout::extra_repr() const { return "p=" + python_repr(p) + ", inplace=False"; }

std::shared_ptr<Module> Dropout::clone() const { return copy_of(*this, p); }

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyLossOptions o) : options(std::move(o)) {
  register_buffer("weight", options.weight);
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy(input, target, options.weight, options.ignore_index, options.reduction, options.label_smoothing);
}

std::shared_ptr<Module> CrossEntropyLoss::clone() const {
  CrossEntropyLossOptions o = options;
  if (o.weight.defined()) o.weight = o.weight.detach().clone();
  return copy_of(*this, std::move(o));
}

BCEWithLogitsLoss::BCEWithLogitsLoss(BCEWithLogitsLossOptions o) : options(std::move(o)) {
  register_buffer("weight", options.weight);
  register_buffer("pos_weight", options.pos_weight);
}

Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, target, options.weight, options.reduction, options.pos_weight);
}

std::shared_ptr<Module> BCEWithLogitsLoss::clone() const {
  BCEWithLogitsLossOptions o = options;
  if (o.weight.defined()) o.weight = o.weight.detach().clone();
  if (o.pos_weight.defined()) o.pos_weight = o.pos_weight.detach().clone();
  return copy_of(*this, std::move(o));
}

}  // namespace vesta::nn
