// Optimizers: SGD, Adam, AdamW, RMSprop; a step is one fused op over all parameters that have a gradient.
#pragma once
#include <vesta/nn/module.h>

namespace vesta::optim {

/// The base of optimizers: the parameters and their gradients.
class VESTA_API Optimizer {
 public:
  /// Takes leaves that require grad; raises on an empty list, on duplicates and on anything else.
  explicit Optimizer(std::vector<Tensor> parameters);
  virtual ~Optimizer() = default;
  /// Updates every parameter that has a gradient by one step.
  virtual void step() = 0;
  void zero_grad(bool set_to_none = true);
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  /// Lists the parameters that have a gradient now, by index.
  std::vector<size_t> with_grad() const;
  std::vector<Tensor> parameters_;
};

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
/// Gradient descent with momentum (Sutskever et al. 2013, in PyTorch's form).
class VESTA_API SGD : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, SGDOptions options);
  void step() override;
  SGDOptions options;  // lr may be changed between steps

 private:
  std::vector<Tensor> momentum_;
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
/// Adam: steps scaled by running moments of the gradient (Kingma and Ba 2015).
class VESTA_API Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, AdamOptions options) : Adam(std::move(parameters), options, false) {}
  void step() override;
  AdamOptions options;

 protected:
  Adam(std::vector<Tensor> parameters, AdamOptions options, bool decoupled);

 private:
  bool decoupled_;
  std::vector<Tensor> mean_, square_, largest_, steps_;
};

/// Adam with weight decay decoupled from the gradient (Loshchilov and Hutter 2019); PyTorch's default decay is 1e-2.
class VESTA_API AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, AdamOptions options = {.weight_decay = 1e-2})
      : Adam(std::move(parameters), options, true) {}
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
/// RMSprop: steps divided by a running root mean square of the gradient (Hinton, Coursera lecture 6e, 2012).
class VESTA_API RMSprop : public Optimizer {
 public:
  RMSprop(std::vector<Tensor> parameters, RMSpropOptions options);
  void step() override;
  RMSpropOptions options;

 private:
  std::vector<Tensor> square_, mean_, momentum_, steps_;
};

}  // namespace vesta::optim
