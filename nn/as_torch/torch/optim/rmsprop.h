// RMSprop: steps divided by a running root mean square of the gradient (Hinton, Coursera lecture 6e, 2012).
#pragma once
#include <torch/optim/fused.h>

namespace torch::optim {

struct RMSpropOptions : detail::OptionsOf<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, alpha) = 0.99;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, centered) = false;

 public:
  VESTA_FIELDS(lr_, alpha_, eps_, weight_decay_, momentum_, centered_)
};

struct RMSpropParamState : detail::StateOf<RMSpropParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(Tensor, square_avg);
  TORCH_ARG(Tensor, momentum_buffer);
  TORCH_ARG(Tensor, grad_avg);

 public:
  VESTA_FIELDS(step_, square_avg_, momentum_buffer_, grad_avg_)
  detail::Counter counter;
};

class RMSprop : public detail::FusedOptimizer<RMSprop, RMSpropOptions, RMSpropParamState> {
 public:
  using FusedOptimizer::FusedOptimizer;
  static void check(const RMSpropOptions& o) {
    detail::check_not_negative(o.lr(), "learning rate");
    detail::check_not_negative(o.eps(), "epsilon value");
    detail::check_not_negative(o.momentum(), "momentum value");
    detail::check_not_negative(o.weight_decay(), "weight_decay value");
    detail::check_not_negative(o.alpha(), "alpha value");
  }
  static void update(const detail::Lists<RMSpropParamState>& lists, const RMSpropOptions& o) {
    using State = RMSpropParamState;
    const auto squares = lists.zeros([](State& s) -> Tensor& { return s.square_avg(); });
    std::vector<Tensor> means, buffers;
    if (o.centered()) means = lists.zeros([](State& s) -> Tensor& { return s.grad_avg(); });
    if (o.momentum() > 0) buffers = lists.zeros([](State& s) -> Tensor& { return s.momentum_buffer(); });
    vesta::_fused_rmsprop_(lists.parameters, lists.grads, squares, means, buffers, lists.steps(), o.lr(), o.alpha(),
                           o.eps(), o.weight_decay(), o.momentum(), o.centered(), false);
  }
};

}  // namespace torch::optim
