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
  detail::Fields fields() override {
    return {{"lr", &lr_},
            {"momentum", &momentum_},
            {"dampening", &dampening_},
            {"weight_decay", &weight_decay_},
            {"nesterov", &nesterov_}};
  }
};

struct SGDParamState : detail::StateOf<SGDParamState> {
  TORCH_ARG(Tensor, momentum_buffer);

 public:
  detail::Fields fields() override { return {{"momentum_buffer", &momentum_buffer_}}; }
};

class SGD : public detail::FusedOptimizer {
 public:
  VESTA_TORCH_OPTIMIZER(SGD)

  void update(const detail::Lists& all, const OptimizerOptions& options) override {
    const auto& o = static_cast<const SGDOptions&>(options);
    if (o.momentum() == 0) return call(all, {}, o, false);
    // Parameters that get their first gradient now start their momentum with it; the others continue theirs.
    constexpr auto buffer = VESTA_TORCH_STATE(SGDParamState, momentum_buffer);
    std::vector<size_t> fresh, going;
    for (size_t i = 0; i < all.states.size(); ++i) (buffer(*all.states[i]).defined() ? going : fresh).push_back(i);
    for (const auto* which : {&fresh, &going}) {
      if (which->empty()) continue;
      const detail::Lists some = all.some(*which);
      call(some, some.zeros(buffer), o, which == &fresh);
    }
  }
  bool update_sparse(const Tensor& p, const Tensor& grad, const OptimizerOptions& options) override {
    const auto& o = static_cast<const SGDOptions&>(options);
    if (o.momentum() != 0 || o.weight_decay() != 0) return false;
    p.add_(grad, -o.lr());
    return true;
  }

 private:
  static void check(const SGDOptions& o) {
    detail::check_not_negative(o.lr(), "learning rate");
    detail::check_not_negative(o.momentum(), "momentum value");
    detail::check_not_negative(o.weight_decay(), "weight_decay value");
    TORCH_CHECK(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
                "Nesterov momentum requires a momentum and zero dampening");
  }
  static void call(const detail::Lists& lists, const std::vector<Tensor>& buffers, const SGDOptions& o,
                   bool is_first_step) {
    vesta::_fused_sgd_(lists.parameters, lists.grads, buffers, o.weight_decay(), o.momentum(), o.lr(), o.dampening(),
                       o.nesterov(), false, is_first_step);
  }
};

}  // namespace torch::optim
