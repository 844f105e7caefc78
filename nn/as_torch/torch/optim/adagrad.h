// Adagrad: p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps), s the sum of all g ** 2 (Duchi et al. 2011).
#pragma once
#include <torch/optim/fused.h>

namespace torch::optim {

struct AdagradOptions : detail::OptionsOf<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, lr_decay) = 0;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, initial_accumulator_value) = 0;
  TORCH_ARG(double, eps) = 1e-10;

 public:
  VESTA_FIELDS(lr_, lr_decay_, weight_decay_, initial_accumulator_value_, eps_)
};

struct AdagradParamState : detail::StateOf<AdagradParamState> {
  TORCH_ARG(Tensor, sum);
  TORCH_ARG(int64_t, step) = 0;

 public:
  VESTA_FIELDS(sum_, step_)
  detail::Counter counter;
};

class Adagrad : public detail::FusedOptimizer<Adagrad, AdagradOptions, AdagradParamState> {
 public:
  explicit Adagrad(const std::vector<OptimizerParamGroup>& param_groups, AdagradOptions defaults = {})
      : FusedOptimizer(param_groups, defaults) {
    for (const OptimizerParamGroup& group : param_groups_) {
      for (const Tensor& p : group.params()) {
        auto state = std::make_unique<AdagradParamState>();
        state->sum(first_sum(p, defaults));
        state_[p.impl()] = std::move(state);
      }
    }
  }
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {})
      : Adagrad({OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  static void check(const AdagradOptions& o) {
    detail::check_not_negative(o.lr(), "learning rate");
    detail::check_not_negative(o.lr_decay(), "lr_decay value");
    detail::check_not_negative(o.weight_decay(), "weight_decay value");
    detail::check_not_negative(o.initial_accumulator_value(), "initial_accumulator_value value");
    detail::check_not_negative(o.eps(), "epsilon value");
  }
  static void update(const detail::Lists<AdagradParamState>& lists, const AdagradOptions& o) {
    for (size_t i = 0; i < lists.states.size(); ++i) {  // of groups that were added
      Tensor& sum = lists.states[i]->sum();
      if (!sum.defined()) sum = first_sum(lists.owners[i], o);
    }
    const auto sums = lists.zeros([](AdagradParamState& s) -> Tensor& { return s.sum(); });
    vesta::_fused_adagrad_(lists.parameters, lists.grads, sums, lists.steps(), o.lr(), o.lr_decay(), o.weight_decay(),
                           o.eps(), false);
  }

 private:
  static Tensor first_sum(const Tensor& p, const AdagradOptions& o) {
    return vesta::full_like(p.detach(), o.initial_accumulator_value());
  }
};

}  // namespace torch::optim
