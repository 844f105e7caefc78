// Module: the base of layers and models. A tour:
//
//   struct Net : nn::Module {
//     std::shared_ptr<nn::Linear> fc1 = register_module("fc1", nn::linear(784, 64));
//     std::shared_ptr<nn::Linear> fc2 = register_module("fc2", nn::linear(64, 10));
//     Tensor forward(const Tensor& x) override { return (*fc2)(relu((*fc1)(x))); }
//   };
//
// A module is held by shared_ptr; calling it, `(*net)(x)`, runs its hooks around forward(). Names of parameters and
// buffers, and so the state dict, are those of the Python package: either language can load the other's checkpoints.
// A module whose forward() takes or returns something else derives from ModuleOf (layer.h).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <vesta/core/dispatch/profiler.h>
#include <vesta/nn/value.h>

namespace vesta::nn {

/// An ordered list of named tensors: the result of state_dict() and the contents of safetensors files.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

/// Returns the name of a class without its namespaces.
VESTA_API std::string class_name(const std::type_info& type);

class Module;

/// The event of a module's call, open while this lives: by its path below the outermost module that is being called in
/// this thread, that one by its class.
class VESTA_API ProfiledCall {
 public:
  explicit ProfiledCall(Module& m) : token_(profiler::running() ? begin(m) : 0) {}
  ~ProfiledCall() {
    if (token_) end(token_);
  }
  ProfiledCall(const ProfiledCall&) = delete;

 private:
  static uint64_t begin(Module& m);
  static void end(uint64_t token);
  uint64_t token_;
};

class VESTA_API Module {
 public:
  using Named = std::vector<std::pair<std::string, Tensor>>;
  using NamedModules = std::vector<std::pair<std::string, Module*>>;
  /// A function that runs before forward() and may replace the inputs.
  using ForwardPreHook = std::function<void(Module&, Values& inputs)>;
  /// A function that runs after forward() and may replace the output.
  using ForwardHook = std::function<void(Module&, const Values& inputs, Value& output)>;

  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// Computes the output of one input. A module of another signature derives from ModuleOf.
  virtual Tensor forward(const Tensor& input);
  /// Calls forward() between the hooks. The module's repr is added to an error on the way.
  Tensor operator()(const Tensor& input);
  /// Calls a module of any signature between its hooks, with inputs whose types are known only now: Sequential does.
  Value run(std::span<const Value> inputs);
  /// Returns the name of the class ("Linear"), which is Python's too.
  virtual std::string kind() const;
  /// Returns the arguments as Python prints them ("in_features=784, out_features=64, bias=True").
  virtual std::string extra_repr() const { return ""; }
  /// Makes an independent copy with its own parameters, buffers and submodules. All layers of this library implement
  /// it. NotImplementedError: a class has none of its own; RuntimeError: its constructor makes other parameters,
  /// buffers or submodules than this module has.
  virtual std::shared_ptr<Module> clone() const;

  /// Registers and returns a parameter (a leaf that requires grad); an undefined tensor registers its absence.
  Tensor register_parameter(std::string name, Tensor value);
  /// Registers and returns a buffer; a persistent one is part of the state dict.
  Tensor register_buffer(std::string name, Tensor value, bool persistent = true);
  /// Registers and returns a submodule.
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_module(std::move(name), module);
    return module;
  }

  std::vector<Tensor> parameters() const;
  /// Lists parameters by qualified name ("fc1.weight"); a shared one appears once, under its first name.
  Named named_parameters(const std::string& prefix = "") const;
  std::vector<Tensor> buffers() const;
  Named named_buffers(const std::string& prefix = "") const;
  /// Lists the direct submodules.
  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& named_children() const { return modules_; }
  /// Lists this module (named `prefix`) and all below it.
  NamedModules named_modules(const std::string& prefix = "");

  /// Switches dropout, batch normalisation and the like to training (or evaluation), here and below.
  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }
  /// Clears the gradients of all parameters (or zeroes them in place).
  void zero_grad(bool set_to_none = true);
  /// Converts floating-point parameters and buffers in place: the tensors stay the same objects.
  void to(DType dtype);
  void to(Device device);
  void requires_grad_(bool on = true);
  /// Calls `f` on every submodule, then on this one.
  void apply(const std::function<void(Module&)>& f);

  /// Returns all parameters and persistent buffers, detached, under PyTorch's names.
  StateDict state_dict(const std::string& prefix = "") const;
  /// Copies values into parameters and buffers by name. With `strict`, missing or unexpected names raise; a wrong
  /// shape always does. Everything is checked before anything is written.
  void load_state_dict(const StateDict& state, bool strict = true);

  /// Registers a hook and returns a number for remove_hook. A hook is a function of the module and the input, a Tensor
  /// or, for any signature, `const Values&`; what it returns (unless void, undefined or nothing) replaces the input.
  template <class Hook>
  int register_forward_pre_hook(Hook hook);
  /// Registers a hook that runs after forward(): a function of the module, the input and the output, all Tensors or,
  /// for any signature, `const Values&` and `const Value&`; what it returns replaces the output.
  template <class Hook>
  int register_forward_hook(Hook hook);
  int add_forward_pre_hook(ForwardPreHook hook);
  int add_forward_hook(ForwardHook hook);
  void remove_hook(int id);
  bool has_hooks() const { return !pre_hooks_.empty() || !hooks_.empty(); }

  /// Returns the tree of modules as Python prints it.
  virtual std::string repr() const;

  /// Returns this module as an M. TypeError: it is none.
  template <class M>
  M& as() {
    if (auto* m = dynamic_cast<M*>(this)) return *m;
    fail(Cause::type, "as: expected a module of class ", class_name(typeid(M)), ", got ", kind(), ".");
  }

 protected:
  /// Computes the output of inputs whose types are known only now; see run().
  virtual Value call(std::span<const Value> inputs);
  void run_pre_hooks(Values& inputs);
  void run_hooks(const Values& inputs, Value& output);
  /// Raises: input i is undefined.
  [[noreturn]] void fail_undefined_input(size_t i) const;
  /// Calls `f`; the module's repr is added to an error on the way, unless an inner module has done so. A profile that
  /// runs sees the call.
  template <class F>
  decltype(auto) in_context(const F& f) {
    const ProfiledCall noted(*this);
    try {
      return f();
    } catch (const Error& e) {
      fail_in_context(e);
    }
  }
  [[noreturn]] void fail_in_context(const Error& e) const;
  void add_module(std::string name, std::shared_ptr<Module> module);
  /// Copies own parameters, buffers and mode (neither hooks nor submodules) from a module of the same class; for
  /// clone().
  void copy_state(const Module& from);
  /// Does so for this module and all below it, which must have the same names in both.
  void copy_tree(const Module& from);
  /// Registers copies of another module's own parameters and buffers.
  void copy_entries(const Module& from);
  /// Makes an M from constructor arguments, with the state of `from`: the result of clone().
  template <class M, class... A>
  static std::shared_ptr<M> copy_of(const M& from, A&&... arguments) {
    auto copy = std::make_shared<M>(std::forward<A>(arguments)...);
    copy->copy_state(from);
    return copy;
  }

 private:
  struct Buffer {
    std::string name;
    Tensor value;
    bool persistent;
  };
  void check_name(const std::string& name) const;
  void collect(const std::string& prefix, bool buffers, Named& into) const;

  Named parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules_;
  std::vector<std::pair<int, std::shared_ptr<ForwardPreHook>>> pre_hooks_;
  std::vector<std::pair<int, std::shared_ptr<ForwardHook>>> hooks_;
  int next_hook_ = 0;
  bool training_ = true;
};

namespace detail {
/// Returns the only one of a hook's inputs. TypeError: there are others, or it is no tensor.
VESTA_API const Tensor& only_tensor(const Module& module, const Values& inputs);
}  // namespace detail

template <class Hook>
int Module::register_forward_pre_hook(Hook hook) {
  if constexpr (std::is_invocable_v<Hook&, Module&, const Tensor&>) {
    return add_forward_pre_hook([hook](Module& m, Values& inputs) mutable {
      const Tensor& input = detail::only_tensor(m, inputs);
      if constexpr (std::is_void_v<std::invoke_result_t<Hook&, Module&, const Tensor&>>) hook(m, input);
      else if (Tensor r = hook(m, input); r.defined()) inputs[0] = r;
    });
  } else {
    return add_forward_pre_hook([hook](Module& m, Values& inputs) mutable {
      const Values& given = inputs;
      if constexpr (std::is_void_v<std::invoke_result_t<Hook&, Module&, const Values&>>) hook(m, given);
      else if (std::optional<Values> r = hook(m, given)) inputs = std::move(*r);
    });
  }
}

template <class Hook>
int Module::register_forward_hook(Hook hook) {
  if constexpr (std::is_invocable_v<Hook&, Module&, const Tensor&, const Tensor&>) {
    return add_forward_hook([hook](Module& m, const Values& inputs, Value& output) mutable {
      const Tensor &input = detail::only_tensor(m, inputs), &result = output.tensor();
      if constexpr (std::is_void_v<std::invoke_result_t<Hook&, Module&, const Tensor&, const Tensor&>>) {
        hook(m, input, result);
      } else if (Tensor r = hook(m, input, result); r.defined()) {
        output = r;
      }
    });
  } else {
    return add_forward_hook([hook](Module& m, const Values& inputs, Value& output) mutable {
      const Value& given = output;
      if constexpr (std::is_void_v<std::invoke_result_t<Hook&, Module&, const Values&, const Value&>>) {
        hook(m, inputs, given);
      } else if (Value r = hook(m, inputs, given); r.has_value()) {
        output = std::move(r);
      }
    });
  }
}

}  // namespace vesta::nn
