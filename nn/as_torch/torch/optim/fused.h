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

inline void check_not_negative(double value, const char* what) {
  TORCH_CHECK(value >= 0, "Invalid ", what, ": ", value);
}

/// The parameters of a group that have a gradient, each once, and lists of their states for a fused op.
struct Lists {
  std::vector<Tensor> owners, parameters, grads;
  std::vector<FieldState*> states;

  /// Returns the tensors that `field` finds in each state, zeros where they are new.
  std::vector<Tensor> zeros(Tensor& (*field)(FieldState&)) const {
    std::vector<Tensor> r;
    r.reserve(states.size());
    for (size_t i = 0; i < states.size(); ++i) {
      Tensor& t = field(*states[i]);
      if (!t.defined()) t = vesta::zeros_like(owners[i].detach());
      r.push_back(part(t));
    }
    return r;
  }
  /// Returns the counts of steps, which the op increments, and increments the states' own.
  std::vector<Tensor> steps() const {
    std::vector<Tensor> r;
    r.reserve(states.size());
    for (FieldState* s : states) {
      int64_t& count = *s->count();
      if (s->counted != count) s->counter = vesta::full(vesta::IntList(), double(count), vesta::DType::float32);
      s->counted = ++count;
      r.push_back(s->counter);
    }
    return r;
  }
  /// Returns the entries of these numbers.
  Lists some(const std::vector<size_t>& which) const {
    Lists r;
    for (size_t i : which) {
      r.owners.push_back(owners[i]);
      r.parameters.push_back(parameters[i]);
      r.grads.push_back(grads[i]);
      r.states.push_back(states[i]);
    }
    return r;
  }
};

/// The base of optimizers whose step is a fused op.
class FusedOptimizer : public Optimizer {
 public:
  using Optimizer::Optimizer;

  Tensor step(LossClosure closure = nullptr) override {
    return updated(closure, [&] {
      for (OptimizerParamGroup& group : param_groups_) step_group(group);
    });
  }
  void save(serialize::OutputArchive& archive) const override { write_optimizer(archive, *this); }
  void load(serialize::InputArchive& archive) override { read_optimizer(archive, *this, state_maker()); }

 protected:
  /// Returns the function that makes a state.
  virtual std::unique_ptr<OptimizerParamState> (*state_maker() const)() = 0;
  /// Takes a step of the listed parameters.
  virtual void update(const Lists& lists, const OptimizerOptions& options) = 0;
  /// Takes a step of a parameter with a sparse gradient; returns whether there is one.
  virtual bool update_sparse(const Tensor& p, const Tensor& grad, const OptimizerOptions& options) {
    (void)p, (void)grad, (void)options;
    return false;
  }

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
        for (const Tensor& p : now) {
          const bool seen = std::any_of(first.begin(), first.end(), [&](const Tensor& q) { return q.is_same(p); });
          (seen ? later : first).push_back(p);
        }
        now = std::move(first);
      }
      step_each(now, group.options());
      now = std::exchange(later, {});
    }
  }
  static bool has_repeated(const std::vector<Tensor>& tensors) {
    std::vector<const void*> impls;
    impls.reserve(tensors.size());
    for (const Tensor& t : tensors) impls.push_back(t.impl());
    std::sort(impls.begin(), impls.end());
    return std::adjacent_find(impls.begin(), impls.end()) != impls.end();
  }
  void step_each(const std::vector<Tensor>& parameters, const OptimizerOptions& options) {
    Lists lists;
    for (const Tensor& p : parameters) {
      const Tensor g = p.grad();
      if (g.is_sparse()) {
        TORCH_CHECK(update_sparse(p, g, options), c10::demangle(typeid(*this).name()),
                    " does not support sparse gradients with these options. Give embeddings sparse(false).");
        continue;
      }
      std::unique_ptr<OptimizerParamState>& state = state_[p.impl()];
      if (!state) state = state_maker()();
      lists.owners.push_back(p);
      lists.parameters.push_back(part(p));
      lists.grads.push_back(part(g));
      lists.states.push_back(static_cast<FieldState*>(state.get()));
    }
    if (!lists.states.empty()) update(lists, options);
  }
};

}  // namespace torch::optim::detail

/// Defines the constructors of an optimizer, and what FusedOptimizer asks of it, but update().
#define VESTA_TORCH_OPTIMIZER(Name, ...)                                                                         \
  explicit Name(const std::vector<OptimizerParamGroup>& param_groups, Name##Options defaults __VA_ARGS__)        \
      : FusedOptimizer(param_groups, std::unique_ptr<OptimizerOptions>(new Name##Options(defaults))) {           \
    check(defaults);                                                                                             \
  }                                                                                                              \
  explicit Name(std::vector<Tensor> params, Name##Options defaults __VA_ARGS__)                                  \
      : Name(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}   \
                                                                                                                 \
 protected:                                                                                                      \
  std::unique_ptr<OptimizerParamState> (*state_maker() const)() override { return detail::new_state<Name##ParamState>; }

/// Finds a tensor of a state of class State: a function of a detail::FieldState.
#define VESTA_TORCH_STATE(State, name) [](detail::FieldState& s) -> Tensor& { return static_cast<State&>(s).name(); }
