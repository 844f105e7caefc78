// The base of optimizers whose step is one of Vesta's fused ops over all parameters of a group, the same that
// vesta::optim and the Python package call: the bits are theirs.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/optim/serialize.h>

#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/view.h>

namespace torch::optim::detail {

/// Returns a tensor as the fused ops take it: complex ones as pairs of real numbers, which share their memory.
inline Tensor part(const Tensor& t) { return vesta::is_complex(t.dtype()) ? vesta::view_as_real(t) : t; }

/// The count of steps of a state with `step`, as a tensor, which the fused ops increment.
struct Counter {
  Tensor tensor;
  int64_t counted = -1;
  Tensor& at(int64_t step) {
    if (counted != step) tensor = vesta::full(vesta::IntList(), double(step), vesta::DType::float32);
    counted = step;
    return tensor;
  }
};

/// The parameters of a group that have a gradient, each once, and lists of their states for a fused op.
template <class State>
struct Lists {
  std::vector<Tensor> owners, parameters, grads;
  std::vector<State*> states;

  /// Returns the tensors that `field` is in each state, zeros where they are new.
  template <class F>
  std::vector<Tensor> zeros(const F& field) const {
    std::vector<Tensor> r;
    r.reserve(states.size());
    for (size_t i = 0; i < states.size(); ++i) {
      Tensor& t = field(*states[i]);
      if (!t.defined()) t = vesta::zeros_like(owners[i].detach());
      r.push_back(part(t));
    }
    return r;
  }
  /// Returns the counts of steps, which the op increments, and increments `step`.
  std::vector<Tensor> steps() const {
    std::vector<Tensor> r;
    r.reserve(states.size());
    for (State* s : states) {
      r.push_back(s->counter.at(s->step()));
      s->step(s->step() + 1);
      s->counter.counted = s->step();
    }
    return r;
  }
};

/// The base of an optimizer `Self` with these options and states. Self has `check(options)` and `update(lists,
/// options)`.
template <class Self, class Options, class State>
class FusedOptimizer : public Optimizer {
 public:
  explicit FusedOptimizer(const std::vector<OptimizerParamGroup>& param_groups, Options defaults = {})
      : Optimizer(param_groups, std::make_unique<Options>(defaults)) {
    Self::check(defaults);
  }
  explicit FusedOptimizer(std::vector<Tensor> params, Options defaults = {})
      : FusedOptimizer({OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

  Tensor step(LossClosure closure = nullptr) override {
    return updated(closure, [&] {
      for (OptimizerParamGroup& group : param_groups_) step_group(group);
    });
  }
  void save(serialize::OutputArchive& archive) const override { optim::serialize<State, Options>(archive, *this); }
  void load(serialize::InputArchive& archive) override { optim::serialize<State, Options>(archive, *this); }

 private:
  /// Takes a step of the parameters of a group. One that is listed twice takes two, one after the other.
  void step_group(OptimizerParamGroup& group) {
    std::vector<Tensor> now, later;
    for (const Tensor& p : group.params()) {
      if (p.defined() && p.grad().defined()) now.push_back(p);
    }
    while (!now.empty()) {
      if (has_repeated(now)) {
        std::vector<Tensor> first;
        for (Tensor& p : now) {
          const bool seen = std::any_of(first.begin(), first.end(), [&](const Tensor& q) { return q.is_same(p); });
          (seen ? later : first).push_back(p);
        }
        now = std::move(first);
      }
      step_each(now, static_cast<const Options&>(group.options()));
      now = std::exchange(later, {});
    }
  }
  static bool has_repeated(const std::vector<Tensor>& tensors) {
    std::vector<const void*> impls;
    for (const Tensor& t : tensors) impls.push_back(t.impl());
    std::sort(impls.begin(), impls.end());
    return std::adjacent_find(impls.begin(), impls.end()) != impls.end();
  }
  void step_each(const std::vector<Tensor>& parameters, const Options& options) {
    Lists<State> lists;
    for (const Tensor& p : parameters) {
      const Tensor g = p.grad();
      TORCH_CHECK(!g.is_sparse(), c10::demangle(typeid(Self).name()),
                  " does not support sparse gradients. Give embeddings sparse(false).");
      std::unique_ptr<OptimizerParamState>& state = state_[p.impl()];
      if (!state) state = std::make_unique<State>();
      lists.owners.push_back(p);
      lists.parameters.push_back(part(p));
      lists.grads.push_back(part(g));
      lists.states.push_back(static_cast<State*>(state.get()));
    }
    Self::update(lists, options);
  }
};

inline void check_not_negative(double value, const char* what) {
  TORCH_CHECK(value >= 0, "Invalid ", what, ": ", value);
}

}  // namespace torch::optim::detail
