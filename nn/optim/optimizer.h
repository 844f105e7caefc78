// Optimizer and OptimizerOf: parameter groups, state, state dicts. An optimizer of one's own is its options and one
// rule:
//
//   struct SignSGDOptions {
//     double lr = 1e-3;
//     VESTA_FIELDS(lr)
//   };
//   struct SignSGD : optim::OptimizerOf<SignSGD, SignSGDOptions> {
//     using OptimizerOf::OptimizerOf;
//     void update(const Tensor& p, const Tensor& grad, optim::State&, const SignSGDOptions& o) {
//       p.sub_(sign(grad), o.lr);
//     }
//   };
//   SignSGD optimizer(net->parameters(), {.lr = 0.01});
//
// Groups, schedules, state dicts and clipping work with it as with those of the library.
#pragma once
#include <concepts>
#include <deque>

#include <vesta/nn/fields.h>
#include <vesta/nn/module.h>

namespace vesta::optim {

/// The tensors of a group, with or without their names. With names (`net->named_parameters()`) the state dict has them
/// in place of numbers, and so does not depend on the order of the parameters.
struct VESTA_API Parameters {
  std::vector<Tensor> tensors;
  std::vector<std::string> names;
  Parameters() = default;
  Parameters(std::vector<Tensor> t) : tensors(std::move(t)) {}
  Parameters(std::initializer_list<Tensor> t) : tensors(t) {}
  Parameters(const nn::Module::Named& named);
};

/// The state of one parameter, by name: "step", "exp_avg", ...
class VESTA_API State {
 public:
  /// Returns the tensor of a name without dots, undefined where it is new. The reference stays valid.
  Tensor& operator[](std::string_view name);
  /// Returns the tensor of a name, zeros like `p` where it is new.
  Tensor zeros(std::string_view name, const Tensor& p);
  /// Counts a step; returns its number, 1 for the first.
  double next_step();
  bool empty() const { return entries_.empty(); }
  const std::deque<std::pair<std::string, Tensor>>& entries() const { return entries_; }

 private:
  std::deque<std::pair<std::string, Tensor>> entries_;
};

/// The base of optimizers.
class VESTA_API Optimizer {
 public:
  Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;
  /// Updates every parameter that has a gradient by one step.
  virtual void step() = 0;
  /// Computes the loss and its gradients by `closure`, takes a step and returns the loss.
  virtual Tensor step(const std::function<Tensor()>& closure);
  /// Clears the gradients of all parameters (or zeroes them in place).
  void zero_grad(bool set_to_none = true);
  /// Returns the parameters of all groups.
  std::vector<Tensor> parameters() const;

  virtual size_t num_groups() const = 0;
  virtual double lr(size_t group = 0) const = 0;
  virtual void set_lr(size_t group, double lr) = 0;
  /// Returns the rate with which a group began, from which schedules compute; nothing before a schedule has set it. It
  /// is part of the state dict ("param_groups.0.initial_lr").
  std::optional<double> initial_lr(size_t group = 0) const;
  void set_initial_lr(size_t group, double lr);

  /// Returns the state of every parameter ("state.0.exp_avg", or "state.fc.weight.exp_avg" for named parameters) and
  /// the options of every group ("param_groups.0.lr").
  nn::StateDict state_dict() const;
  /// Takes over a state dict of an optimizer of the same class over as many parameters. ValueError: names or shapes
  /// that do not fit, an option that is missing or refused; nothing is changed then.
  void load_state_dict(const nn::StateDict& state);

 protected:
  /// One parameter and its state.
  struct Slot {
    Tensor parameter;
    std::string name;  // its name, or its number
    State state;
  };
  /// Checks the tensors of a new group (leaves, none of them twice) and gives each its slot.
  std::deque<Slot> make_slots(const Parameters& parameters) const;
  virtual std::vector<const Slot*> slots() const = 0;
  /// Returns a group's options by name, as 0-d tensors.
  virtual nn::StateDict group_options(size_t group) const = 0;
  /// Takes back the options of all groups, or raises and changes nothing.
  virtual void set_options(const std::vector<nn::StateDict>& options) = 0;

 private:
  std::vector<std::optional<double>> initial_lrs_;
};

namespace detail {
VESTA_API Tensor option_tensor(double value);
VESTA_API Tensor option_tensor(bool value);
VESTA_API Tensor option_tensor(int64_t value);
template <std::integral T>
Tensor option_tensor(T value) {
  return option_tensor(int64_t(value));
}
VESTA_API void read_option(const Tensor& t, double& value);
VESTA_API void read_option(const Tensor& t, bool& value);
VESTA_API void read_option(const Tensor& t, int64_t& value);
template <std::integral T>
void read_option(const Tensor& t, T& value) {
  int64_t read = 0;
  read_option(t, read);
  value = T(read);
}
/// Raises unless a number is at least 0.
VESTA_API void check_not_negative(const std::string& op, const char* what, double value);
}  // namespace detail

/// The base of an optimizer `Self` with these options (an aggregate with VESTA_FIELDS and `lr`). Self has `update(p,
/// grad, state, options)`, called without recording for every parameter that has a gradient; or `step_group(group)`. A
/// function `check(options)` may refuse options.
template <class Self, class Options_>
class VESTA_API OptimizerOf : public Optimizer {
 public:
  using Options = Options_;
  /// Parameters with options of their own, for the constructor.
  struct ParamGroup {
    Parameters params;
    Options options = {};
  };
  /// A group in use.
  struct Group {
    std::deque<Slot> slots;
    Options options;
  };

  explicit OptimizerOf(Parameters parameters, Options o = {}) {
    add_param_group({std::move(parameters), std::move(o)});
  }
  explicit OptimizerOf(std::vector<ParamGroup> given) {
    VESTA_CHECK(!given.empty(), value, "optimizer got an empty parameter list.");
    for (ParamGroup& group : given) add_param_group(std::move(group));
  }

  using Optimizer::step;
  void step() override {
    const NoGrad off;
    for (Group& group : groups_) self().step_group(group);
  }
  /// Updates the parameters of a group, one after the other.
  void step_group(Group& group) {
    for (Slot& slot : group.slots) {
      if (const Tensor grad = slot.parameter.grad(); grad.defined()) {
        self().update(slot.parameter, grad, slot.state, group.options);
      }
    }
  }
  /// Adds parameters, which no other group may have.
  void add_param_group(ParamGroup given) {
    if constexpr (requires { Self::check(given.options); }) Self::check(given.options);
    groups_.push_back({make_slots(given.params), std::move(given.options)});
  }

  size_t num_groups() const override { return groups_.size(); }
  /// Returns a group's options, which may be changed between steps.
  Options& options(size_t group = 0) { return at(group).options; }
  double lr(size_t group = 0) const override { return const_cast<OptimizerOf*>(this)->at(group).options.lr; }
  void set_lr(size_t group, double lr) override { at(group).options.lr = lr; }

 protected:
  std::vector<const Slot*> slots() const override {
    std::vector<const Slot*> r;
    for (const Group& group : groups_) {
      for (const Slot& slot : group.slots) r.push_back(&slot);
    }
    return r;
  }
  nn::StateDict group_options(size_t group) const override {
    nn::StateDict r;
    each_option(groups_[group].options, [&](std::string_view name, const auto& value) {
      r.emplace_back(std::string(name), detail::option_tensor(value));
    });
    return r;
  }
  void set_options(const std::vector<nn::StateDict>& given) override {
    std::vector<Options> read;
    for (size_t g = 0; g < groups_.size(); ++g) {
      Options& options = read.emplace_back(groups_[g].options);
      each_option(options, [&](std::string_view name, auto& value) {
        for (const auto& [n, t] : given[g]) {
          if (n == name) detail::read_option(t, value);
        }
      });
      if constexpr (requires { Self::check(options); }) Self::check(options);
    }
    for (size_t g = 0; g < groups_.size(); ++g) groups_[g].options = std::move(read[g]);
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  Group& at(size_t group) {
    VESTA_CHECK(group < groups_.size(), index, "optimizer: group ", group, " is out of range, there are ",
                groups_.size(), ".");
    return groups_[group];
  }
  template <class O, class F>
  static void each_option(O& options, const F& f) {
    const std::vector<std::string_view> names = nn::split_names(Options::field_names);
    size_t i = 0;
    options.with_fields([&](auto&... values) { (f(names[i++], values), ...); });
  }

  std::deque<Group> groups_;
};

}  // namespace vesta::optim
