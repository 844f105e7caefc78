// Adam: steps scaled by running moments of the gradient (Kingma and Ba 2015). AdamW decouples weight decay from the
// gradient (Loshchilov and Hutter 2019).
#pragma once
#include <tuple>

#include <torch/optim/fused.h>

namespace torch::optim {
namespace detail {

/// The state of a parameter of Adam or AdamW.
template <class Derived>
struct AdamState : StateOf<Derived> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(Tensor, exp_avg);
  TORCH_ARG(Tensor, exp_avg_sq);
  TORCH_ARG(Tensor, max_exp_avg_sq);

 public:
  VESTA_FIELDS(step_, exp_avg_, exp_avg_sq_, max_exp_avg_sq_)
  Counter counter;
};

template <class Options>
void check_adam(const Options& o) {
  check_not_negative(o.lr(), "learning rate");
  check_not_negative(o.eps(), "epsilon value");
  const auto [first, second] = o.betas();
  TORCH_CHECK(0 <= first && first < 1, "Invalid beta parameter at index 0: ", first);
  TORCH_CHECK(0 <= second && second < 1, "Invalid beta parameter at index 1: ", second);
  check_not_negative(o.weight_decay(), "weight_decay value");
}

template <class State, class Options>
void update_adam(const Lists<State>& lists, const Options& o, bool decoupled) {
  const auto means = lists.zeros([](State& s) -> Tensor& { return s.exp_avg(); });
  const auto squares = lists.zeros([](State& s) -> Tensor& { return s.exp_avg_sq(); });
  std::vector<Tensor> largest;
  if (o.amsgrad()) largest = lists.zeros([](State& s) -> Tensor& { return s.max_exp_avg_sq(); });
  const auto [beta1, beta2] = o.betas();
  vesta::_fused_adam_(lists.parameters, lists.grads, means, squares, largest, lists.steps(), o.lr(), beta1, beta2,
                      o.weight_decay(), o.eps(), o.amsgrad(), false, decoupled);
}

}  // namespace detail

struct AdamOptions : detail::OptionsOf<AdamOptions> {
  AdamOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(double, lr);
  TORCH_ARG(betas_t, betas) = { 0.9, 0.999 };
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, amsgrad) = false;

 public:
  VESTA_FIELDS(lr_, betas_, eps_, weight_decay_, amsgrad_)
};

struct AdamParamState : detail::AdamState<AdamParamState> {};

class Adam : public detail::FusedOptimizer<Adam, AdamOptions, AdamParamState> {
 public:
  using FusedOptimizer::FusedOptimizer;
  static void check(const AdamOptions& o) { detail::check_adam(o); }
  static void update(const detail::Lists<AdamParamState>& lists, const AdamOptions& o) {
    detail::update_adam(lists, o, false);
  }
};

struct AdamWOptions : detail::OptionsOf<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : lr_(lr) {}
  using betas_t = std::tuple<double, double>;
  TORCH_ARG(double, lr);
  TORCH_ARG(betas_t, betas) = { 0.9, 0.999 };
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 1e-2;
  TORCH_ARG(bool, amsgrad) = false;

 public:
  VESTA_FIELDS(lr_, betas_, eps_, weight_decay_, amsgrad_)
};

struct AdamWParamState : detail::AdamState<AdamWParamState> {};

class AdamW : public detail::FusedOptimizer<AdamW, AdamWOptions, AdamWParamState> {
 public:
  using FusedOptimizer::FusedOptimizer;
  static void check(const AdamWOptions& o) { detail::check_adam(o); }
  static void update(const detail::Lists<AdamWParamState>& lists, const AdamWOptions& o) {
    detail::update_adam(lists, o, true);
  }
};

}  // namespace torch::optim
