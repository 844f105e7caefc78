// Cloneable: the base of modules that can be copied. Its class registers everything in reset().
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include <torch/nn/module.h>

namespace torch::nn {
namespace detail {

/// What of Cloneable does not depend on the class: little is compiled for each layer.
class CloneableBase : public Module {
 public:
  using Module::Module;
  /// Registers parameters, buffers and submodules, with initial values; the constructor calls it.
  virtual void reset() = 0;

 protected:
  /// Makes of a copy of this object, which shares its tensors, one that has its own.
  std::shared_ptr<Module> with_own_tensors(CloneableBase* object, const std::optional<Device>& device) const {
    const vesta::NoGrad off;
    std::shared_ptr<Module> owner(static_cast<Module*>(object));
    CloneableBase& copy = *object;
    copy.parameters_.clear();
    copy.buffers_.clear();
    copy.children_.clear();
    copy.reset();
    fill(copy.parameters_, parameters_, device, "parameters", "register_parameter");
    fill(copy.buffers_, buffers_, device, "buffers", "register_buffer");
    check(copy.children_.size(), children_.size(), "child modules", "register_module");
    for (const auto& child : children_) copy.children_[child.key()]->clone_(*child.value(), device);
    return owner;
  }
  static void check_same_class(bool same) {
    TORCH_CHECK(same,
                "Attempted to clone submodule, but it is of a different type than the submodule it was to be "
                "cloned into");
  }

 private:
  using Tensors = OrderedDict<std::string, Tensor>;
  static void check(size_t of_copy, size_t here, const char* what, const char* method) {
    TORCH_CHECK(of_copy == here, "The cloned module does not have the same number of ", what,
                " as the original module after calling reset(). Are you sure you called ", method,
                "() inside reset() and not the constructor?");
  }
  static void fill(Tensors& to, const Tensors& from, const std::optional<Device>& device, const char* what,
                   const char* method) {
    check(to.size(), from.size(), what, method);
    for (const auto& entry : from) {
      if (!entry.value().defined()) continue;
      const Tensor t = entry.value().detach();
      const bool elsewhere = device && t.device() != *device;
      vesta::autograd::replace_memory(to[entry.key()], elsewhere ? t.to(*device) : vesta::clone(t), "clone");
    }
  }
};

}  // namespace detail

/// The base of a module `Derived` whose reset() registers its parameters, buffers and submodules, so that clone()
/// can make others of its own.
template <class Derived>
class Cloneable : public detail::CloneableBase {
 public:
  using CloneableBase::CloneableBase;

  /// Copies the options, and the values of all tensors, on `device` if one is given. Error: reset() does not register
  /// what this module has.
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    return with_own_tensors(new Derived(static_cast<const Derived&>(*this)), device);
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    const std::shared_ptr<Module> copy = other.clone(device);
    const Derived* const same = dynamic_cast<const Derived*>(copy.get());
    check_same_class(same != nullptr);
    static_cast<Derived&>(*this) = *same;
  }
};

}  // namespace torch::nn
