// Optimizers. A step is one fused op over all parameters of a group that have a gradient; its formula is a struct in
// core/ops/optim_step.h.
#pragma once
#include <vesta/nn/optim/optimizer.h>

namespace vesta::optim {

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  VESTA_FIELDS(lr, momentum, dampening, weight_decay, nesterov, maximize)
};
/// Gradient descent with momentum (Sutskever et al. 2013, in PyTorch's form).
class VESTA_API SGD : public OptimizerOf<SGD, SGDOptions> {
 public:
  using OptimizerOf::OptimizerOf;
  void step_group(Group& group);
  static void check(const Options& o);
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
  VESTA_FIELDS(lr, beta1, beta2, eps, weight_decay, amsgrad, maximize)
};
/// Adam: steps scaled by running moments of the gradient (Kingma and Ba 2015).
class VESTA_API Adam : public OptimizerOf<Adam, AdamOptions> {
 public:
  using OptimizerOf::OptimizerOf;
  void step_group(Group& group);
  static void check(const Options& o);
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
  VESTA_FIELDS(lr, beta1, beta2, eps, weight_decay, amsgrad, maximize)
};
/// Adam with weight decay decoupled from the gradient (Loshchilov and Hutter 2019).
class VESTA_API AdamW : public OptimizerOf<AdamW, AdamWOptions> {
 public:
  using OptimizerOf::OptimizerOf;
  void step_group(Group& group);
  static void check(const Options& o);
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
  VESTA_FIELDS(lr, alpha, eps, weight_decay, momentum, centered, maximize)
};
/// RMSprop: steps divided by a running root mean square of the gradient (Hinton, Coursera lecture 6e, 2012).
class VESTA_API RMSprop : public OptimizerOf<RMSprop, RMSpropOptions> {
 public:
  using OptimizerOf::OptimizerOf;
  void step_group(Group& group);
  static void check(const Options& o);
};

/// Declares an optimizer whose step is one fused op.
#define VESTA_FUSED_OPTIMIZER(Name)                                                                    \
  class VESTA_API Name : public OptimizerOf<Name, Name##Options> {                                     \
   public:                                                                                             \
    using OptimizerOf::OptimizerOf;                                                                    \
    void step_group(Group& group);                                                                     \
    static void check(const Options& o);                                                               \
  }

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
  VESTA_FIELDS(lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize)
};
/// p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps), s the sum of all g ** 2 (Duchi et al. 2011).
VESTA_FUSED_OPTIMIZER(Adagrad);

struct AdadeltaOptions {
  double lr = 1, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
  VESTA_FIELDS(lr, rho, eps, weight_decay, maximize)
};
/// p -= lr * sqrt(u + eps) / sqrt(v + eps) * g, u and v running means of steps ** 2 and g ** 2 (Zeiler 2012).
VESTA_FUSED_OPTIMIZER(Adadelta);

struct AdamaxOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool maximize = false;
  VESTA_FIELDS(lr, beta1, beta2, eps, weight_decay, maximize)
};
/// Adam with the infinity norm (Kingma and Ba 2015).
VESTA_FUSED_OPTIMIZER(Adamax);

struct NAdamOptions {
  double lr = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
  bool decoupled_weight_decay = false, maximize = false;
  VESTA_FIELDS(lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize)
};
/// Adam with Nesterov's momentum (Dozat 2016).
VESTA_FUSED_OPTIMIZER(NAdam);

struct RAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;
  VESTA_FIELDS(lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize)
};
/// Adam whose step is rectified while the variance of its scale is large (Liu et al. 2020).
VESTA_FUSED_OPTIMIZER(RAdam);

struct ASGDOptions {
  double lr = 1e-2, lambd = 1e-4, alpha = 0.75, t0 = 1e6, weight_decay = 0;
  bool maximize = false;
  VESTA_FIELDS(lr, lambd, alpha, t0, weight_decay, maximize)
};
/// Averaged stochastic gradient descent: the state "ax" is the mean of p from step t0 on (Polyak and Juditsky 1992).
VESTA_FUSED_OPTIMIZER(ASGD);

struct RpropOptions {
  double lr = 1e-2, etaminus = 0.5, etaplus = 1.2, min_step = 1e-6, max_step = 50;
  bool maximize = false;
  VESTA_FIELDS(lr, etaminus, etaplus, min_step, max_step, maximize)
};
/// Resilient backpropagation: steps by the gradient's sign alone (Riedmiller and Braun 1993).
VESTA_FUSED_OPTIMIZER(Rprop);
#undef VESTA_FUSED_OPTIMIZER

/// VESTA_OPTIMIZERS(X) is X(Name) for each optimizer.
#define VESTA_OPTIMIZERS(X) \
  X(SGD) X(Adam) X(AdamW) X(RMSprop) X(Adagrad) X(Adadelta) X(Adamax) X(NAdam) X(RAdam) X(ASGD) X(Rprop)

}  // namespace vesta::optim
