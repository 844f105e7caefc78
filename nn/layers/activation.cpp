#include <vesta/nn/layers/activation.h>

#include <vesta/nn/python_repr.h>

namespace vesta::nn {

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

}  // namespace vesta::nn
