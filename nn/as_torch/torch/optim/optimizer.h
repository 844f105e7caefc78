// torch::optim::Optimizer: parameter groups with options of their own, and the state of each parameter.
//
//   torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
//   for (auto& group : optimizer.param_groups()) group.options().set_lr(group.options().get_lr() * 0.1);
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <torch/demangle.h>
#include <torch/serialize/archive.h>

namespace torch::optim {
namespace detail {

/// Raises: a class does not have what it must override.
[[noreturn]] inline void fail_not_overridden(const std::string& what, const char* base, const char* derive_from) {
  TORCH_CHECK(false, what, " has not been implemented for torch::optim::", base, ". Override it in your subclass of ",
              "torch::optim::", derive_from, ".");
}

}  // namespace detail

/// The state of one parameter.
class OptimizerParamState {
 public:
  OptimizerParamState() = default;
  OptimizerParamState(const OptimizerParamState&) = default;
  OptimizerParamState& operator=(const OptimizerParamState&) = default;
  OptimizerParamState(OptimizerParamState&&) noexcept = default;
  OptimizerParamState& operator=(OptimizerParamState&&) noexcept = default;
  virtual ~OptimizerParamState() = default;
  virtual std::unique_ptr<OptimizerParamState> clone() const { fail("clone()"); }
  virtual void serialize(serialize::InputArchive&) { fail("serialize(InputArchive&)"); }
  virtual void serialize(serialize::OutputArchive&) const { fail("serialize(OutputArchive&)"); }

 private:
  [[noreturn]] static void fail(const char* what) {
    detail::fail_not_overridden(what, "OptimizerParamState", "OptimizerCloneableParamState<YourOptimizerParamState>");
  }
};

/// The base of states `Derived`, which can be copied.
template <class Derived>
class OptimizerCloneableParamState : public OptimizerParamState {
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

/// The options of an optimizer or of one of its groups.
class OptimizerOptions {
 public:
  OptimizerOptions() = default;
  OptimizerOptions(const OptimizerOptions&) = default;
  OptimizerOptions& operator=(const OptimizerOptions&) = default;
  OptimizerOptions(OptimizerOptions&&) noexcept = default;
  OptimizerOptions& operator=(OptimizerOptions&&) noexcept = default;
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const { fail("clone()"); }
  virtual void serialize(serialize::InputArchive&) { fail("serialize(InputArchive&)"); }
  virtual void serialize(serialize::OutputArchive&) const { fail("serialize(OutputArchive&)"); }
  virtual double get_lr() const { fail("double get_lr()"); }
  virtual void set_lr(double) { fail("set_lr(double)"); }

 private:
  friend class Optimizer;
  /// Takes over from an optimizer's defaults what was not set here. Error: they are of another class.
  virtual void merge(const OptimizerOptions& defaults) { (void)defaults; }
  [[noreturn]] static void fail(const char* what) {
    detail::fail_not_overridden(what, "OptimizerOptions", "OptimizerCloneableOptions<YourOptimizerOptions>");
  }
};

/// The base of options `Derived`, which can be copied.
template <class Derived>
class OptimizerCloneableOptions : public OptimizerOptions {
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
};

/// Parameters, with options of their own or with the optimizer's.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& o)
      : params_(o.params_), options_(o.options_ ? o.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(const OptimizerParamGroup&) = delete;
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) noexcept = default;
  ~OptimizerParamGroup() = default;

  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options() {
    TORCH_CHECK(options_ != nullptr, "OptimizerParamGroup: this group has no options of its own");
    return *options_;
  }
  const OptimizerOptions& options() const { return const_cast<OptimizerParamGroup*>(this)->options(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 protected:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

/// The base of optimizers.
class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  using States = std::unordered_map<void*, std::unique_ptr<OptimizerParamState>>;

  Optimizer(const std::vector<OptimizerParamGroup>& param_groups, std::unique_ptr<OptimizerOptions> defaults)
      : defaults_(std::move(defaults)) {
    for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
  }
  Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
      : Optimizer({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer& operator=(Optimizer&&) = default;
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient, after the closure, if there is one, has computed the loss and the
  /// gradients; returns the loss.
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  /// Clears the gradients of all parameters (or zeroes them in place).
  void zero_grad(bool set_to_none = true) {
    for (const OptimizerParamGroup& group : param_groups_) {
      for (const Tensor& p : group.params()) {
        if (!p.defined()) continue;
        const Tensor g = p.grad();
        if (!g.defined()) continue;
        if (set_to_none) p.set_grad({});
        else vesta::zero_(g.detach());
      }
    }
  }
  /// Adds parameters. What their options leave at its initial value is taken from the optimizer's.
  void add_param_group(const OptimizerParamGroup& given) {
    for (const Tensor& p : given.params()) {
      TORCH_CHECK(p.defined(), "optimizer: expected tensors, got an undefined one");
      TORCH_CHECK(p.is_leaf(), "can't optimize a non-leaf Tensor");
      TORCH_CHECK(state_.count(p.impl()) == 0, "some parameters appear in more than one parameter group");
    }
    OptimizerParamGroup group(given);
    if (group.has_options()) group.options().merge(*defaults_);
    else group.set_options(defaults_->clone());
    param_groups_.push_back(std::move(group));
  }
  void add_parameters(const std::vector<Tensor>& added) {
    parameters().insert(parameters().end(), added.begin(), added.end());
  }

  /// Returns the parameters of the first group.
  std::vector<Tensor>& parameters() { return param_groups_.at(0).params(); }
  const std::vector<Tensor>& parameters() const { return param_groups_.at(0).params(); }
  /// Returns the number of parameters in all groups.
  size_t size() const noexcept {
    size_t r = 0;
    for (const OptimizerParamGroup& group : param_groups_) r += group.params().size();
    return r;
  }
  OptimizerOptions& defaults() noexcept { return *defaults_; }
  const OptimizerOptions& defaults() const noexcept { return *defaults_; }
  std::vector<OptimizerParamGroup>& param_groups() noexcept { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const noexcept { return param_groups_; }
  /// Returns the states by the address of their parameter (`p.unsafeGetTensorImpl()`).
  States& state() noexcept { return state_; }
  const States& state() const noexcept { return state_; }

  virtual void save(serialize::OutputArchive&) const {}
  virtual void load(serialize::InputArchive&) {}

 protected:
  /// Calls the closure, if there is one, and then `update`, which records nothing; returns the loss.
  template <class F>
  static Tensor updated(const LossClosure& closure, const F& update) {
    const vesta::NoGrad off;
    Tensor loss;
    if (closure) {
      const vesta::EnableGrad on;
      loss = closure();
    }
    update();
    return loss;
  }

  std::vector<OptimizerParamGroup> param_groups_;
  States state_;
  std::unique_ptr<OptimizerOptions> defaults_;
};

inline serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  optimizer.save(archive);
  return archive;
}
inline serialize::InputArchive& operator>>(serialize::InputArchive& archive, Optimizer& optimizer) {
  optimizer.load(archive);
  return archive;
}

}  // namespace torch::optim
