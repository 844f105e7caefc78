// SGD: gradient descent with momentum (Sutskever et al. 2013, in PyTorch's form).
#pragma once
#include <torch/optim/fused.h>

namespace torch::optim {

struct SGDOptions : detail::OptionsOf<SGDOptions> {
  SGDOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(double, dampening) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, nesterov) = false;

 public:
  VESTA_FIELDS(lr_, momentum_, dampening_, weight_decay_, nesterov_)
};

struct SGDParamState : detail::StateOf<SGDParamState> {
  TORCH_ARG(Tensor, momentum_buffer);

 public:
  VESTA_FIELDS(momentum_buffer_)
};

class SGD : public detail::FusedOptimizer<SGD, SGDOptions, SGDParamState> {
 public:
  using FusedOptimizer::FusedOptimizer;
  static void check(const SGDOptions& o) {
    detail::check_not_negative(o.lr(), "learning rate");
    detail::check_not_negative(o.momentum(), "momentum value");
    detail::check_not_negative(o.weight_decay(), "weight_decay value");
    TORCH_CHECK(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
                "Nesterov momentum requires a momentum and zero dampening");
  }
  static void update(const detail::Lists<SGDParamState>& all, const SGDOptions& o) {
    if (o.momentum() == 0) return call(all, {}, o, false);
    // Parameters that get their first gradient now start their momentum with it; the others continue theirs.
    detail::Lists<SGDParamState> fresh, going;
    for (size_t i = 0; i < all.states.size(); ++i) {
      auto& to = all.states[i]->momentum_buffer().defined() ? going : fresh;
      to.owners.push_back(all.owners[i]);
      to.parameters.push_back(all.parameters[i]);
      to.grads.push_back(all.grads[i]);
      to.states.push_back(all.states[i]);
    }
    for (const auto* some : {&fresh, &going}) {
      if (some->states.empty()) continue;
      const auto buffers = some->zeros([](SGDParamState& s) -> Tensor& { return s.momentum_buffer(); });
      call(*some, buffers, o, some == &fresh);
    }
  }

 private:
  static void call(const detail::Lists<SGDParamState>& lists, const std::vector<Tensor>& buffers, const SGDOptions& o,
                   bool is_first_step) {
    vesta::_fused_sgd_(lists.parameters, lists.grads, buffers, o.weight_decay(), o.momentum(), o.lr(), o.dampening(),
                       o.nesterov(), false, is_first_step);
  }
};

}  // namespace torch::optim
