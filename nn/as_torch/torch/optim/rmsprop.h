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
  detail::Fields fields() override {
    return {{"lr", &lr_},
            {"alpha", &alpha_},
            {"eps", &eps_},
            {"weight_decay", &weight_decay_},
            {"momentum", &momentum_},
            {"centered", &centered_}};
  }
};

struct RMSpropParamState : detail::StateOf<RMSpropParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(Tensor, square_avg);
  TORCH_ARG(Tensor, momentum_buffer);
  TORCH_ARG(Tensor, grad_avg);

 public:
  detail::Fields fields() override {
    return {{"step", &step_},
            {"square_avg", &square_avg_},
            {"momentum_buffer", &momentum_buffer_},
            {"grad_avg", &grad_avg_}};
  }
  int64_t* count() override { return &step_; }
};

class RMSprop : public detail::FusedOptimizer {
 public:
  VESTA_TORCH_OPTIMIZER(RMSprop, = {})

  void update(const detail::Lists& lists, const OptimizerOptions& options) override {
    const auto& o = static_cast<const RMSpropOptions&>(options);
    const auto squares = lists.zeros(VESTA_TORCH_STATE(RMSpropParamState, square_avg));
    std::vector<Tensor> means, buffers;
    if (o.centered()) means = lists.zeros(VESTA_TORCH_STATE(RMSpropParamState, grad_avg));
    if (o.momentum() > 0) buffers = lists.zeros(VESTA_TORCH_STATE(RMSpropParamState, momentum_buffer));
    vesta::_fused_rmsprop_(lists.parameters, lists.grads, squares, means, buffers, lists.steps(), o.lr(), o.alpha(),
                           o.eps(), o.weight_decay(), o.momentum(), o.centered(), false);
  }

 private:
  static void check(const RMSpropOptions& o) {
    detail::check_not_negative(o.lr(), "learning rate");
    detail::check_not_negative(o.eps(), "epsilon value");
    detail::check_not_negative(o.momentum(), "momentum value");
    detail::check_not_negative(o.weight_decay(), "weight_decay value");
    detail::check_not_negative(o.alpha(), "alpha value");
  }
};

}  // namespace torch::optim
