// The numbers of an optimizer step: plain data, which kernels of every device and instruction set include.
#pragma once

namespace vesta {

/// One step of SGD (Sutskever et al. 2013 as PyTorch writes it).
struct SgdStep {
  double lr, weight_decay, momentum, dampening;
  bool nesterov, maximize, first;
};
/// One step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019, `decoupled`). bias1 and bias2_sqrt
/// follow from the number n of steps: 1 - beta1^n and sqrt(1 - beta2^n).
struct AdamStep {
  double lr, beta1, beta2, weight_decay, eps, bias1, bias2_sqrt;
  bool amsgrad, maximize, decoupled;
};
/// One step of RMSprop (Hinton, Coursera lecture 6e, 2012); `centered` divides by the estimated deviation (Graves
/// 2013).
struct RmspropStep {
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;
};

}  // namespace vesta
