#include <vesta/nn/layers/activation.h>

namespace vesta::nn {

Dropout::Dropout(double probability) : p(probability) {
  VESTA_CHECK(p >= 0 && p <= 1, value, "Dropout: dropout probability has to be between 0 and 1, but got ", p, ".");
}

std::string Dropout::extra_repr() const {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, p == double(int64_t(p)) ? "%.1f" : "%.12g", p);
  return std::string("p=") + buffer + ", inplace=False";
}

std::shared_ptr<Module> Dropout::clone() const {
  auto copy = std::make_shared<Dropout>(p);
  copy->copy_state(*this);
  return copy;
}

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyLossOptions o) : options(std::move(o)) {
  register_buffer("weight", options.weight);
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy(input, target, options.weight, options.ignore_index, options.reduction, options.label_smoothing);
}

}  // namespace vesta::nn
