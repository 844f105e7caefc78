// Sequential: modules one after the other.
#pragma once
#include <vesta/nn/module.h>

namespace vesta::nn {

/// A chain of modules: each one's output is the next one's input. They are named "0", "1", ... as in Python.
class VESTA_API Sequential : public Module {
 public:
  Sequential() = default;
  Sequential(std::initializer_list<std::shared_ptr<Module>> modules);
  /// Appends a module; returns it for use elsewhere.
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return named_children().size(); }
  Module& operator[](size_t i) const;
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "Sequential"; }
  std::shared_ptr<Module> clone() const override;
};

/// Makes a shared module: `nn::make<nn::Linear>(784, 64)`.
template <class M, class... A>
std::shared_ptr<M> make(A&&... a) {
  return std::make_shared<M>(std::forward<A>(a)...);
}

}  // namespace vesta::nn
