// Activations, dropout and losses as modules.
#pragma once
#include <vesta/nn/module.h>

namespace vesta::nn {

/// Defines a module without arguments over an op.
#define VESTA_ACTIVATION(Name, op)                                                             \
  class VESTA_API Name : public Module {                                                       \
   public:                                                                                     \
    Tensor forward(const Tensor& input) override { return vesta::op(input); }                  \
    std::string kind() const override { return #Name; }                                        \
    std::shared_ptr<Module> clone() const override { return copy_of(*this); }                  \
  }
VESTA_ACTIVATION(ReLU, relu);
VESTA_ACTIVATION(Tanh, tanh);
VESTA_ACTIVATION(Sigmoid, sigmoid);
VESTA_ACTIVATION(LogSigmoid, logsigmoid);
#undef VESTA_ACTIVATION

struct SoftplusOptions {
  double beta = 1, threshold = 20;
};
/// The module log(1 + e ** (beta * x)) / beta, elementwise; x itself where beta * x > threshold.
class VESTA_API Softplus : public Module {
 public:
  explicit Softplus(SoftplusOptions o = {}) : options(o) {}
  Tensor forward(const Tensor& input) override { return softplus(input, options.beta, options.threshold); }
  std::string kind() const override { return "Softplus"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override { return copy_of(*this, options); }
  const SoftplusOptions options;
};

/// The module that zeroes elements with probability p while training and scales the rest by 1 / (1 - p).
class VESTA_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& input) override { return dropout(input, p, is_training()); }
  std::string kind() const override { return "Dropout"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override;
  const double p;
};

struct CrossEntropyLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
};
/// The cross-entropy of logits [N, C] (or [C], [N, C, d1, ...]) against class numbers or probabilities.
class VESTA_API CrossEntropyLoss : public Module {
 public:
  explicit CrossEntropyLoss(CrossEntropyLossOptions options = {});
  using Module::forward;
  Tensor forward(const Tensor& input, const Tensor& target);
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }
  std::string kind() const override { return "CrossEntropyLoss"; }
  std::shared_ptr<Module> clone() const override;
  const CrossEntropyLossOptions options;
};

struct BCEWithLogitsLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};
};
/// The binary cross-entropy of logits against probabilities of the same shape.
class VESTA_API BCEWithLogitsLoss : public Module {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsLossOptions options = {});
  using Module::forward;
  Tensor forward(const Tensor& input, const Tensor& target);
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }
  std::string kind() const override { return "BCEWithLogitsLoss"; }
  std::shared_ptr<Module> clone() const override;
  const BCEWithLogitsLossOptions options;
};

}  // namespace vesta::nn
