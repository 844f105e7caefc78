// Containers of modules (Sequential, ModuleList, ModuleDict) and of parameters (ParameterList, ParameterDict).
#pragma once
#include <vesta/nn/layer.h>

namespace vesta::nn {

/// Makes a shared module: `nn::make<nn::Linear>(784, 64)`.
template <class M, class... A>
std::shared_ptr<M> make(A&&... a) {
  return std::make_shared<M>(std::forward<A>(a)...);
}

/// Modules by number, named "0", "1", ... as in Python: the base of Sequential and ModuleList.
class VESTA_API NumberedModules : public Module {
 public:
  /// Appends a module.
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return named_children().size(); }
  Module& operator[](size_t i) const;
  /// Returns a module as an M. TypeError: it is none.
  template <class M>
  M& at(size_t i) const {
    return (*this)[i].template as<M>();
  }

 protected:
  /// Appends copies of another list's modules, parameters and buffers.
  void copy_modules(const NumberedModules& from);
};

/// A chain of modules: each one's output is the next one's input. The first may take several inputs.
class VESTA_API Sequential : public NumberedModules {
 public:
  Sequential() = default;
  Sequential(std::initializer_list<std::shared_ptr<Module>> modules);
  Tensor forward(const Tensor& input) override;
  using Module::operator();
  /// Calls the chain with other inputs than one tensor; `seq.apply_to<R>(a, b)` returns an R.
  template <class R = Tensor, class... A>
  R apply_to(const A&... inputs) {
    const Values given{Value(inputs)...};
    return run(given).template to<R>();
  }
  std::shared_ptr<Module> clone() const override;

 protected:
  Value call(std::span<const Value> inputs) override;
};

/// A list of modules, whose own forward() the model writes.
class VESTA_API ModuleList : public NumberedModules {
 public:
  ModuleList() = default;
  ModuleList(std::initializer_list<std::shared_ptr<Module>> modules);
  /// Writes equal neighbours once, with their number, as Python does.
  std::string repr() const override;
  std::shared_ptr<Module> clone() const override;
};

/// Modules by name, in the order in which they were added.
class VESTA_API ModuleDict : public Module {
 public:
  ModuleDict() = default;
  ModuleDict(std::initializer_list<std::pair<std::string, std::shared_ptr<Module>>> modules);
  /// Adds a module under a new name.
  void insert(std::string name, std::shared_ptr<Module> module) { add_module(std::move(name), std::move(module)); }
  size_t size() const { return named_children().size(); }
  bool contains(std::string_view name) const;
  /// Returns the module of this name. IndexError: there is none.
  Module& operator[](std::string_view name) const;
  template <class M>
  M& at(std::string_view name) const {
    return (*this)[name].template as<M>();
  }
  std::shared_ptr<Module> clone() const override;
};

namespace detail {
/// The base of both parameter containers.
class VESTA_API Parameters : public Module {
 public:
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  std::string repr() const override;

 protected:
  void insert_parameter(std::string name, Tensor parameter);
  /// Registers copies of another one's parameters.
  void copy_parameters(const Parameters& from);

  Named entries_;
};
}  // namespace detail

/// Parameters by number, named "0", "1", ... as in Python. Iterating gives pairs of name and tensor.
class VESTA_API ParameterList : public detail::Parameters {
 public:
  ParameterList() = default;
  ParameterList(std::initializer_list<Tensor> parameters);
  /// Appends a leaf, which requires grad from then on.
  void append(Tensor parameter);
  /// Returns parameter i. IndexError: there is none.
  const Tensor& operator[](size_t i) const;
  std::shared_ptr<Module> clone() const override;
};

/// Parameters by name, in the order in which they were added.
class VESTA_API ParameterDict : public detail::Parameters {
 public:
  ParameterDict() = default;
  ParameterDict(std::initializer_list<std::pair<std::string, Tensor>> parameters);
  /// Adds a leaf under a new name; it requires grad from then on.
  void insert(std::string name, Tensor parameter);
  bool contains(std::string_view name) const;
  /// Returns the parameter of this name. IndexError: there is none.
  const Tensor& operator[](std::string_view name) const;
  std::shared_ptr<Module> clone() const override;
};

}  // namespace vesta::nn
