// Cloneable: the base of modules that can be copied. Its class registers everything in reset().
#pragma once
#include <memory>
#include <optional>
#include <utility>

#include <torch/nn/module.h>

namespace torch::nn {

/// The base of a module `Derived` whose reset() registers its parameters, buffers and submodules, so that clone()
/// can make others of its own.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;

  /// Registers parameters, buffers and submodules, with initial values; the constructor calls it.
  virtual void reset() = 0;

  /// Copies the options, and the values of all tensors, on `device` if one is given. Error: reset() does not register
  /// what this module has.
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    const vesta::NoGrad off;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    Module& made = *copy;
    made.parameters_.clear();
    made.buffers_.clear();
    made.children_.clear();
    copy->reset();
    const auto check = [](size_t of_copy, size_t here, const char* what, const char* method) {
      TORCH_CHECK(of_copy == here, "The cloned module does not have the same number of ", what,
                  " as the original module after calling reset(). Are you sure you called ", method,
                  "() inside reset() and not the constructor?");
    };
    const auto fill = [&](OrderedDict<std::string, Tensor>& to, const OrderedDict<std::string, Tensor>& from) {
      for (const auto& entry : from) {
        if (!entry.value().defined()) continue;
        const Tensor t = entry.value().detach();
        vesta::autograd::replace_memory(to[entry.key()],
                                        device && t.device() != *device ? t.to(*device) : vesta::clone(t), "clone");
      }
    };
    check(made.parameters_.size(), parameters_.size(), "parameters", "register_parameter");
    fill(made.parameters_, parameters_);
    check(made.buffers_.size(), this->buffers_.size(), "buffers", "register_buffer");
    fill(made.buffers_, this->buffers_);
    check(made.children_.size(), this->children_.size(), "child modules", "register_module");
    for (const auto& child : this->children_) made.children_[child.key()]->clone_(*child.value(), device);
    return copy;
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    const auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device));
    TORCH_CHECK(copy != nullptr,
                "Attempted to clone submodule, but it is of a different type than the submodule it "
                "was to be cloned into");
    static_cast<Derived&>(*this) = *copy;
  }
};

}  // namespace torch::nn
