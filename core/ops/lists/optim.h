// The op list, fused steps of optimizers and of loss scaling, and norms, products and zeros of lists of tensors. See
// README.md. The numbers of a step are in the order of its struct's members (../optim_step.h). What is recorded is a
// step's formula; the op has no node of its own (no_gradient).
#pragma once

// clang-format off
#define VESTA_OPS_OPTIM(OP)                                                                                            \
  OP(FUNCTION, void, _fused_sgd_,                                                                                      \
     (TensorList params, TensorList grads, TensorList momentum_buffer_list, double weight_decay, double momentum,      \
      double lr, double dampening, bool nesterov, bool maximize, bool is_first_step),                                  \
     (params, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step),  \
     hidden, no_gradient, any_device, accepts(kFloats | kComplexes))                                                   \
  OP(FUNCTION, void, _fused_adam_,                                                                                     \
     (TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList max_exp_avg_sqs,    \
      TensorList state_steps, double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,    \
      bool maximize, bool decoupled = false),                                                                          \
     (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps,         \
      amsgrad, maximize, decoupled), hidden, no_gradient, any_device, accepts(kFloats | kComplexes))                   \
  OP(FUNCTION, void, _fused_rmsprop_,                                                                                  \
     (TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,                               \
      TensorList momentum_buffer_list, TensorList state_steps, double lr, double alpha, double eps,                    \
      double weight_decay, double momentum, bool centered, bool maximize),                                             \
     (params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, lr, alpha, eps, weight_decay,          \
      momentum, centered, maximize), hidden, no_gradient, any_device, accepts(kFloats | kComplexes))                   \
  OP(FUNCTION, void, _fused_adagrad_,                                                                                  \
     (TensorList params, TensorList grads, TensorList state_sums, TensorList state_steps, double lr, double lr_decay,  \
      double weight_decay, double eps, bool maximize),                                                                 \
     (params, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize), hidden, no_gradient,         \
     any_device, accepts(kFloats | kComplexes))                                                                        \
  OP(FUNCTION, void, _fused_adadelta_,                                                                                 \
     (TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas, TensorList state_steps,      \
      double lr, double rho, double eps, double weight_decay, bool maximize),                                          \
     (params, grads, square_avgs, acc_deltas, state_steps, lr, rho, eps, weight_decay, maximize), hidden,              \
     no_gradient, any_device, accepts(kFloats | kComplexes))                                                           \
  OP(FUNCTION, void, _fused_adamax_,                                                                                   \
     (TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_infs, TensorList state_steps,           \
      double lr, double beta1, double beta2, double eps, double weight_decay, bool maximize),                          \
     (params, grads, exp_avgs, exp_infs, state_steps, lr, beta1, beta2, eps, weight_decay, maximize), hidden,          \
     no_gradient, any_device, accepts(kFloats | kComplexes))                                                           \
  OP(FUNCTION, void, _fused_nadam_,                                                                                    \
     (TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList mu_products,        \
      TensorList state_steps, double lr, double beta1, double beta2, double eps, double weight_decay,                  \
      double momentum_decay, bool decoupled, bool maximize),                                                           \
     (params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, lr, beta1, beta2, eps, weight_decay,             \
      momentum_decay, decoupled, maximize), hidden, no_gradient, any_device, accepts(kFloats | kComplexes))            \
  OP(FUNCTION, void, _fused_radam_,                                                                                    \
     (TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs, TensorList state_steps,        \
      double lr, double beta1, double beta2, double eps, double weight_decay, bool decoupled, bool maximize),          \
     (params, grads, exp_avgs, exp_avg_sqs, state_steps, lr, beta1, beta2, eps, weight_decay, decoupled, maximize),    \
     hidden, no_gradient, any_device, accepts(kFloats | kComplexes))                                                   \
  OP(FUNCTION, void, _fused_asgd_,                                                                                     \
     (TensorList params, TensorList grads, TensorList axs, TensorList etas, TensorList mus, TensorList state_steps,    \
      double lr, double lambd, double alpha, double t0, double weight_decay, bool maximize),                           \
     (params, grads, axs, etas, mus, state_steps, lr, lambd, alpha, t0, weight_decay, maximize), hidden, no_gradient,  \
     any_device, accepts(kFloats | kComplexes))                                                                        \
  OP(FUNCTION, void, _fused_rprop_,                                                                                    \
     (TensorList params, TensorList grads, TensorList prevs, TensorList step_sizes, TensorList state_steps,            \
      double etaminus, double etaplus, double min_step, double max_step, bool maximize),                               \
     (params, grads, prevs, step_sizes, state_steps, etaminus, etaplus, min_step, max_step, maximize), hidden,         \
     no_gradient, any_device, accepts(kFloats | kComplexes))                                                           \
  OP(FUNCTION, void, _amp_unscale_, (TensorList grads, const Tensor& found_inf, const Tensor& inv_scale),              \
     (grads, found_inf, inv_scale), hidden, no_gradient, any_device, accepts(kFloats))                                 \
  OP(FUNCTION, void, _amp_update_scale_,                                                                               \
     (const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,                \
      double backoff_factor, int64_t growth_interval),                                                                 \
     (scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval), hidden, no_gradient,          \
     any_device, accepts(kFloats))                                                                                     \
  OP(FUNCTION, Tensor, _list_norms, (TensorList tensors, double ord, bool total), (tensors, ord, total), hidden,       \
     no_gradient, any_device, accepts(kFloats))                                                                        \
  OP(FUNCTION, void, _list_mul_, (TensorList tensors, MaybeTensor by, double factor, bool clip),                       \
     (tensors, by, factor, clip), hidden, no_gradient, any_device, accepts(kFloats))                                   \
  OP(FUNCTION, void, _list_zero_, (TensorList tensors), (tensors), hidden, no_gradient, any_device, accepts(kFloats))
