// torch::nn::Module: the base of modules of libtorch programs. A tour:
//
//   struct Net : torch::nn::Module {
//     Net() : fc(register_module("fc", torch::nn::Linear(2, 3))) {}
//     torch::Tensor forward(torch::Tensor x) { return torch::relu(fc(x)); }
//     torch::nn::Linear fc{nullptr};
//   };
//   auto net = std::make_shared<Net>();
//   for (auto& p : net->named_parameters()) std::cout << p.key() << p.value().sizes();
//
// Note [A Module of its own]
// It does not derive from vesta::nn::Module. That class has a virtual forward(const Tensor&) that returns a Tensor, and
// a program may declare one that takes it and returns something else; it has one to(), train() and clone() of another
// signature; and it cannot be copied, which Cloneable does. Layers hold the same tensors and call the same ops.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <torch/nn/any_value.h>
#include <torch/nn/pimpl.h>
#include <torch/serialize/archive.h>

#include <vesta/autograd/accumulate_grad.h>

namespace torch::nn {
namespace detail { class CloneableBase; }

/// The base of modules: parameters, buffers and submodules by name.
class Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction = std::function<void(const std::string&, const std::shared_ptr<Module>&)>;

  Module() = default;
  /// Makes a module with a name to print in place of its class's.
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module() = default;

  /// Returns the name of the class, "Net" or "torch::nn::LinearImpl".
  const std::string& name() const noexcept {
    if (!name_) name_ = c10::demangle(typeid(*this).name());
    return *name_;
  }
  /// Makes an independent copy, on `device` if one is given; classes over Cloneable have it.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const {
    (void)device;
    TORCH_CHECK(false, "clone() has not been implemented for ", name(), ". Subclass torch::nn::Cloneable<", name(),
                "> instead of torch::nn::Module to inherit the ability to clone.");
  }

  /// Calls a function with this module and all below it, each before its submodules; see the types of functions.
  void apply(const ModuleApplyFunction& function) {
    function(*this);
    each_below([&](const std::string&, const std::shared_ptr<Module>& m) { function(*m); });
  }
  void apply(const ConstModuleApplyFunction& function) const {
    function(*this);
    each_below([&](const std::string&, const std::shared_ptr<Module>& m) { function(*m); });
  }
  void apply(const NamedModuleApplyFunction& function, const std::string& name_prefix = {}) {
    function(name_prefix, *this);
    each_below([&](const std::string& name, const std::shared_ptr<Module>& m) { function(name, *m); }, name_prefix);
  }
  void apply(const ConstNamedModuleApplyFunction& function, const std::string& name_prefix = {}) const {
    function(name_prefix, *this);
    each_below([&](const std::string& name, const std::shared_ptr<Module>& m) { function(name, *m); }, name_prefix);
  }
  void apply(const ModulePointerApplyFunction& function) const {
    function(self());
    each_below([&](const std::string&, const std::shared_ptr<Module>& m) { function(m); });
  }
  void apply(const NamedModulePointerApplyFunction& function, const std::string& name_prefix = {}) const {
    function(name_prefix, self());
    each_below(function, name_prefix);
  }

  std::vector<Tensor> parameters(bool recurse = true) const { return named_parameters(recurse).values(); }
  /// Lists parameters by qualified name ("fc.weight"), here and below.
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const {
    return named(&Module::parameters_, recurse);
  }
  std::vector<Tensor> buffers(bool recurse = true) const { return named_buffers(recurse).values(); }
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const {
    return named(&Module::buffers_, recurse);
  }
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const {
    std::vector<std::shared_ptr<Module>> r;
    if (include_self) r.push_back(self());
    each_below([&](const std::string&, const std::shared_ptr<Module>& m) { r.push_back(m); });
    return r;
  }
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = {},
                                                                  bool include_self = true) const {
    OrderedDict<std::string, std::shared_ptr<Module>> r;
    if (include_self) r.insert(name_prefix, self());
    each_below([&](const std::string& name, const std::shared_ptr<Module>& m) { r.insert(name, m); }, name_prefix);
    return r;
  }
  /// Lists the direct submodules.
  std::vector<std::shared_ptr<Module>> children() const { return children_.values(); }
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const { return children_; }

  /// Switches dropout, batch normalisation and the like to training (or evaluation), here and below.
  virtual void train(bool on = true) {
    for (auto& child : children_) child.value()->train(on);
    is_training_ = on;
  }
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }
  /// Converts parameters and buffers, here and below; the tensors stay the same objects.
  virtual void to(Device device, Dtype dtype, bool non_blocking = false) {
    to(device, ScalarType(dtype), non_blocking);
  }
  virtual void to(Dtype dtype, bool non_blocking = false) { to(ScalarType(dtype), non_blocking); }
  /// The same for programs that override to() with a torch::ScalarType; children are asked by a Dtype, which reaches
  /// an override of either form.
  virtual void to(Device device, ScalarType dtype, bool non_blocking = false) {
    for (auto& child : children_) child.value()->to(device, dtype.value, non_blocking);
    convert([&](const Tensor& t) { return t.detach().to(device).to(dtype.value); });
  }
  virtual void to(ScalarType dtype, bool non_blocking = false) {
    for (auto& child : children_) child.value()->to(dtype.value, non_blocking);
    convert([&](const Tensor& t) { return t.detach().to(dtype.value); });
  }
  virtual void to(Device device, bool non_blocking = false) {
    for (auto& child : children_) child.value()->to(device, non_blocking);
    convert([&](const Tensor& t) { return t.detach().to(device); });
  }
  /// Clears the gradients of all parameters (or zeroes them in place).
  virtual void zero_grad(bool set_to_none = true) {
    for (auto& child : children_) child.value()->zero_grad(set_to_none);
    for (const auto& p : parameters_) {
      if (!p.value().defined()) continue;
      const Tensor g = p.value().grad();
      if (!g.defined()) continue;
      if (set_to_none) p.value().set_grad({});
      else vesta::zero_(g.detach());
    }
  }

  /// Returns this module as an M, or as the module that handle M holds; null where it is none.
  template <class M>
  auto as() noexcept {
    if constexpr (torch::detail::is_module_holder<M>::value) return dynamic_cast<typename M::ContainedType*>(this);
    else return dynamic_cast<M*>(this);
  }
  template <class M>
  auto as() const noexcept {
    if constexpr (torch::detail::is_module_holder<M>::value) {
      return dynamic_cast<const typename M::ContainedType*>(this);
    } else {
      return dynamic_cast<const M*>(this);
    }
  }

  /// Writes parameters and buffers to an archive, those of submodules to archives of their names.
  virtual void save(serialize::OutputArchive& archive) const {
    for (const auto& p : named_parameters(false)) archive.write(p.key(), p.value());
    for (const auto& b : named_buffers(false)) archive.write(b.key(), b.value(), true);
    for (const auto& child : children_) {
      if (!child.value()->is_serializable()) continue;
      serialize::OutputArchive below;
      child.value()->save(below);
      archive.write(child.key(), below);
    }
  }
  /// Reads what save() has written. Error: a name is missing.
  virtual void load(serialize::InputArchive& archive) {
    for (auto& p : named_parameters(false)) archive.read(p.key(), p.value());
    for (auto& b : named_buffers(false)) archive.read(b.key(), b.value(), true);
    for (const auto& child : children_) {
      if (!child.value()->is_serializable()) continue;
      serialize::InputArchive below;
      archive.read(child.key(), below);
      child.value()->load(below);
    }
  }
  /// Returns whether save() writes this submodule; one without tensors may refuse.
  virtual bool is_serializable() const { return true; }
  /// Prints the module without its submodules.
  virtual void pretty_print(std::ostream& stream) const { stream << name(); }

  /// Registers and returns a parameter; an undefined tensor registers its absence.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true) {
    check_name("Parameter", name);
    if (tensor.defined()) tensor.set_requires_grad(requires_grad);
    return parameters_.insert(std::move(name), std::move(tensor));
  }
  /// Registers and returns a buffer.
  Tensor& register_buffer(std::string name, Tensor tensor) {
    check_name("Buffer", name);
    return buffers_.insert(std::move(name), std::move(tensor));
  }
  /// Registers and returns a submodule.
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    check_name("Submodule", name);
    TORCH_CHECK(module != nullptr, "register_module: expected a module, got a null pointer ('", name, "')");
    children_.insert(std::move(name), module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> module) {
    return register_module(std::move(name), module.ptr());
  }
  /// Puts a module in the place of a submodule of this name. Error: there is none.
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    TORCH_CHECK(module != nullptr, "replace_module: expected a module, got a null pointer ('", name, "')");
    children_[name] = module;
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> module) {
    return replace_module(name, module.ptr());
  }
  void unregister_module(const std::string& name) {
    TORCH_CHECK(children_.contains(name), "No Module with name `", name, "` is registered");
    children_.erase(name);
  }

 protected:
  OrderedDict<std::string, Tensor> parameters_{"Parameter"};

 private:
  friend class detail::CloneableBase;
  friend struct ModuleAccess;
  friend std::ostream& operator<<(std::ostream& to, const Module& module) {
    module.print_tree(to, "");
    return to;
  }

  /// Takes over a copy of `other`; of classes over Cloneable.
  virtual void clone_(Module& other, const std::optional<Device>& device) {
    (void)other;
    (void)device;
  }

  static void check_name(const char* what, const std::string& name) {
    TORCH_CHECK(!name.empty(), what, " name must not be empty");
    TORCH_CHECK(name.find('.') == std::string::npos, what, " name must not contain a dot (got '", name, "')");
  }
  static std::string joined(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + "." + name;
  }
  std::shared_ptr<Module> self() const {
    std::shared_ptr<const Module> r = weak_from_this().lock();
    TORCH_CHECK(r != nullptr,
                "It looks like you attempted to retrieve your top-level module as a shared_ptr, but it is not stored "
                "in a shared_ptr. Use std::make_shared<",
                name(),
                "> instead of creating your module on the stack, or alternatively do not try to access your top-level "
                "module at all by passing /*include_self=*/false to modules() or named_modules()");
    return std::const_pointer_cast<Module>(r);
  }
  template <class F>
  void each_below(const F& f, const std::string& prefix = {}) const {
    for (const auto& child : children_) {
      const std::string name = joined(prefix, child.key());
      f(name, child.value());
      child.value()->each_below(f, name);
    }
  }
  OrderedDict<std::string, Tensor> named(OrderedDict<std::string, Tensor> Module::* list, bool recurse) const {
    OrderedDict<std::string, Tensor> r;
    const auto add = [&](const std::string& prefix, const Module& m) {
      for (const auto& entry : m.*list) {
        if (entry.value().defined()) r.insert(joined(prefix, entry.key()), entry.value());
      }
    };
    add("", *this);
    if (recurse) each_below([&](const std::string& name, const std::shared_ptr<Module>& m) { add(name, *m); });
    return r;
  }
  /// Gives own parameters and buffers, and gradients, the memory of what `f` makes of them.
  template <class F>
  void convert(const F& f) {
    const vesta::NoGrad off;
    const auto replace = [&](const Tensor& t) {
      const Tensor made = f(t);
      if (made.dtype() != t.dtype() || made.device() != t.device()) vesta::autograd::replace_memory(t, made, "to");
    };
    for (const auto* list : {&parameters_, &buffers_}) {
      for (const auto& entry : *list) {
        if (!entry.value().defined()) continue;
        replace(entry.value());
        if (const Tensor g = entry.value().grad(); g.defined()) replace(g);
      }
    }
  }
  void print_tree(std::ostream& to, const std::string& indentation) const {
    pretty_print(to);
    if (children_.is_empty()) return;
    const std::string deeper = indentation + "  ";
    to << "(\n";
    for (const auto& child : children_) {
      to << deeper << '(' << child.key() << "): ";
      child.value()->print_tree(to, deeper);
      to << '\n';
    }
    to << indentation << ')';
  }

  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};
  mutable std::optional<std::string> name_;
  bool is_training_ = true;
};

inline serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::shared_ptr<Module>& module) {
  TORCH_CHECK(module != nullptr, "save: expected a module, got a null pointer");
  module->save(archive);
  return archive;
}
inline serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<Module>& module) {
  TORCH_CHECK(module != nullptr, "load: expected a module, got a null pointer");
  module->load(archive);
  return archive;
}
template <class Contained>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const ModuleHolder<Contained>& module) {
  return archive << module.ptr();
}
template <class Contained>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<Contained>& module) {
  return archive >> module.ptr();
}

}  // namespace torch::nn

namespace torch::detail {

template <class M>
using is_module = std::is_base_of<nn::Module, std::decay_t<M>>;
template <class M, class T = void>
using enable_if_module_t = std::enable_if_t<is_module<M>::value, T>;

}  // namespace torch::detail
