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
  detail::Fields fields() override {
    return {{"lr", &lr_},
            {"lr_decay", &lr_decay_},
            {"weight_decay", &weight_decay_},
            {"initial_accumulator_value", &initial_accumulator_value_},
            {"eps", &eps_}};
  }
};

struct AdagradParamState : detail::StateOf<AdagradParamState> {
  TORCH_ARG(Tensor, sum);
  TORCH_ARG(int64_t, step) = 0;

 public:
  detail::Fields fields() override { return {{"sum", &sum_}, {"step", &step_}}; }
  int64_t* count() override { return &step_; }
};

class Adagrad : public detail::FusedOptimizer {
 public:
  explicit Adagrad(const std::vector<OptimizerParamGroup>& param_groups, AdagradOptions defaults = {})
      : FusedOptimizer(param_groups, std::unique_ptr<OptimizerOptions>(new AdagradOptions(defaults))) {
    check(defaults);
    for (const OptimizerParamGroup& group : param_groups_) {
      for (const Tensor& p : group.params()) {
        auto state = detail::new_state<AdagradParamState>();
        static_cast<AdagradParamState&>(*state).sum(first_sum(p, defaults));
        state_[p.impl()] = std::move(state);
      }
    }
  }
  explicit Adagrad(std::vector<Tensor> params, AdagradOptions defaults = {})
      : Adagrad(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

 protected:
  std::unique_ptr<OptimizerParamState> (*state_maker() const)() override {
    return detail::new_state<AdagradParamState>;
  }
  void update(const detail::Lists& lists, const OptimizerOptions& options) override {
    const auto& o = static_cast<const AdagradOptions&>(options);
    constexpr auto sum = VESTA_TORCH_STATE(AdagradParamState, sum);
    for (size_t i = 0; i < lists.states.size(); ++i) {  // of groups that were added
      if (Tensor& s = sum(*lists.states[i]); !s.defined()) s = first_sum(lists.owners[i], o);
    }
    vesta::_fused_adagrad_(lists.parameters, lists.grads, lists.zeros(sum), lists.steps(), o.lr(), o.lr_decay(),
                           o.weight_decay(), o.eps(), false);
  }

 private:
  static Tensor first_sum(const Tensor& p, const AdagradOptions& o) {
    return vesta::full_like(p.detach(), o.initial_accumulator_value());
  }
  static void check(const AdagradOptions& o) {
    detail::check_not_negative(o.lr(), "learning rate");
    detail::check_not_negative(o.lr_decay(), "lr_decay value");
    detail::check_not_negative(o.weight_decay(), "weight_decay value");
    detail::check_not_negative(o.initial_accumulator_value(), "initial_accumulator_value value");
    detail::check_not_negative(o.eps(), "epsilon value");
  }
};

}  // namespace torch::optim
