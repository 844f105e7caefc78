// Containers of modules and parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict, and
// Functional, a function in a module's place.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/any.h>
#include <torch/nn/cloneable.h>

namespace torch::nn {

/// Modules of any class and signature, each of which gets what the one before returns.
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  template <class... M>
    requires(!(sizeof...(M) == 1 && (std::derived_from<std::decay_t<M>, SequentialImpl> && ...)))
  explicit SequentialImpl(M&&... modules) {
    modules_.reserve(sizeof...(M));
    (push_back(std::forward<M>(modules)), ...);
  }
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
    for (auto& item : modules) push_back(item.key(), std::move(item.value()));
  }
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
    for (const NamedAnyModule& m : modules) push_back(m.name(), m.module());
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<SequentialImpl>();
    const std::vector<std::string> names = named_children().keys();
    for (size_t i = 0; i < modules_.size(); ++i) copy->push_back(names[i], modules_[i].clone(device));
    return copy;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "torch::nn::Sequential"; }

  /// Calls the first module with the inputs, the others with what the one before has returned.
  template <class Result = Tensor, class... Inputs>
  Result forward(Inputs&&... inputs) {
    TORCH_CHECK(!is_empty(), "Cannot call forward() on an empty Sequential");
    AnyValue value = modules_.front().any_forward(std::forward<Inputs>(inputs)...);
    for (size_t i = 1; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
    if (Result* result = value.try_get<Result>()) return std::move(*result);
    TORCH_CHECK(false, "The type of the return value is ", c10::demangle(value.type_info().name()),
                ", but you asked for type ", c10::demangle(typeid(Result).name()));
  }

  /// Adds a module: a shared pointer, a handle, an object (which is copied) or an AnyModule.
  template <class M>
  void push_back(M&& module) {
    push_back(std::to_string(modules_.size()), std::forward<M>(module));
  }
  template <class M>
  void push_back(std::string name, M&& module) {
    AnyModule any(std::forward<M>(module));
    register_module(std::move(name), any.ptr());
    modules_.push_back(std::move(any));
  }
  /// Adds the modules of another container.
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  /// Returns a module as the class with which it was put in. Error: that is another one.
  template <class M>
  M& at(size_t index) {
    return part(index).template get<M>();
  }
  template <class M>
  const M& at(size_t index) const {
    return part(index).template get<M>();
  }
  std::shared_ptr<Module> ptr(size_t index) const { return part(index).ptr(); }
  template <class M>
  std::shared_ptr<M> ptr(size_t index) const {
    return part(index).template ptr<M>();
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  AnyModule& part(size_t index) {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index];
  }
  const AnyModule& part(size_t index) const { return const_cast<SequentialImpl*>(this)->part(index); }

  std::vector<AnyModule> modules_;
};

/// A handle of a SequentialImpl, of modules with or without names: Sequential({{"fc", Linear(1, 2)}}).
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() = default;
  Sequential(std::initializer_list<NamedAnyModule> modules) : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}
};

namespace detail {

/// Returns a module as an M. Error: it is none.
template <class M, class Key>
M& cast_part(const std::shared_ptr<Module>& module, const Key& key) {
  static_assert(torch::detail::is_module<M>::value, "at() takes a class that derives from nn::Module");
  M* const found = module->as<M>();
  TORCH_CHECK(found != nullptr, "Unable to cast module[", key, "] to ", c10::demangle(typeid(M).name()));
  return *found;
}
/// Returns the shared pointer of a module that is given as one, as a handle or as an object, which is copied.
template <class M>
std::shared_ptr<Module> pointer_to(std::shared_ptr<M> module) {
  return module;
}
template <class M>
std::shared_ptr<Module> pointer_to(const ModuleHolder<M>& module) {
  return module.ptr();
}
template <class M>
  requires(torch::detail::is_module<M>::value)
std::shared_ptr<Module> pointer_to(M&& module) {
  return std::make_shared<std::decay_t<M>>(std::forward<M>(module));
}

}  // namespace detail

/// A list of modules; calls are those of the program.
class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class... M>
    requires(!(sizeof...(M) == 1 && (std::derived_from<std::decay_t<M>, ModuleListImpl> && ...)))
  explicit ModuleListImpl(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ModuleListImpl>();
    for (const auto& module : modules_) copy->push_back(module->clone(device));
    return copy;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "torch::nn::ModuleList"; }

  /// Adds a module: a shared pointer, a handle or an object, which is copied.
  template <class M>
  void push_back(M&& module) {
    insert(size(), std::forward<M>(module));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  /// Adds a module before another, whose number and those of the rest grow by one.
  template <class M>
  void insert(size_t index, M&& module) {
    TORCH_CHECK(index <= size(), "Index out of range");
    std::shared_ptr<Module> added = detail::pointer_to(std::forward<M>(module));
    register_module(std::to_string(size()), added);
    modules_.insert(modules_.begin() + Iterator::difference_type(index), std::move(added));
    for (size_t i = index; i < size(); ++i) replace_module(std::to_string(i), modules_[i]);
  }

  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  template <class M>
  M& at(size_t index) {
    return detail::cast_part<M>(ptr(index), index);
  }
  template <class M>
  const M& at(size_t index) const {
    return detail::cast_part<M>(ptr(index), index);
  }
  std::shared_ptr<Module> ptr(size_t index) const {
    TORCH_CHECK(index < size(), "Index out of range");
    return modules_[index];
  }
  template <class M>
  std::shared_ptr<M> ptr(size_t index) const {
    return std::dynamic_pointer_cast<M>(ptr(index));
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
TORCH_MODULE(ModuleList);

/// Modules by name, in the order in which they were added.
class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Items = OrderedDict<std::string, std::shared_ptr<Module>>;
  using Iterator = Items::Iterator;
  using ConstIterator = Items::ConstIterator;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    update(modules);
  }
  explicit ModuleDictImpl(const Items& modules) { update(modules); }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    auto copy = std::make_shared<ModuleDictImpl>();
    for (const auto& item : modules_) copy->insert(item.key(), item.value()->clone(device));
    return copy;
  }
  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "torch::nn::ModuleDict"; }

  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const { return modules_.pairs(); }
  std::vector<std::string> keys() const { return modules_.keys(); }
  std::vector<std::shared_ptr<Module>> values() const { return modules_.values(); }
  Iterator begin() { return modules_.begin(); }
  ConstIterator begin() const { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator end() const { return modules_.end(); }
  size_t size() const noexcept { return modules_.size(); }
  bool empty() const noexcept { return modules_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return modules_.contains(key); }
  void clear() {
    for (const auto& item : modules_) unregister_module(item.key());
    modules_.clear();
  }
  std::shared_ptr<Module> operator[](const std::string& key) const { return modules_[key]; }
  template <class M>
  M& at(const std::string& key) {
    return detail::cast_part<M>(modules_[key], key);
  }
  template <class M>
  const M& at(const std::string& key) const {
    return detail::cast_part<M>(modules_[key], key);
  }
  /// Removes and returns a module.
  std::shared_ptr<Module> pop(const std::string& key) {
    auto module = modules_[key];
    modules_.erase(key);
    unregister_module(key);
    return module;
  }
  /// Adds modules, or puts them in the place of those of the same name.
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
    for (const auto& [key, module] : modules) insert(key, module);
  }
  template <class Container>
  void update(const Container& container) {
    for (const auto& item : container) insert(item.key(), item.value());
  }

 private:
  void insert(const std::string& key, std::shared_ptr<Module> module) {
    if (contains(key)) modules_[key] = replace_module(key, std::move(module));
    else modules_.insert(key, register_module(key, std::move(module)));
  }

  Items modules_{"Module"};
};
TORCH_MODULE(ModuleDict);

namespace detail {

inline void print_parameters(std::ostream& to, const char* name, const OrderedDict<std::string, Tensor>& parameters) {
  to << name << "(\n";
  for (const auto& p : parameters) {
    to << '(' << p.key() << "): Parameter containing: [" << torch::toString(p.value().dtype()) << " of size "
       << vesta::text(p.value().sizes()) << "]\n";
  }
  to << ')';
}

}  // namespace detail

/// A list of parameters. A tensor that does not require grad stays so.
class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  using Item = OrderedDict<std::string, Tensor>::Item;
  using Iterator = std::vector<Item>::iterator;
  using ConstIterator = std::vector<Item>::const_iterator;

  ParameterListImpl() = default;
  template <class... T>
    requires(!(sizeof...(T) == 1 && (std::derived_from<std::decay_t<T>, ParameterListImpl> && ...)))
  explicit ParameterListImpl(T&&... tensors) {
    (append(std::forward<T>(tensors)), ...);
  }

  void reset() override {}
  void pretty_print(std::ostream& stream) const override {
    detail::print_parameters(stream, "torch::nn::ParameterList", parameters_);
  }

  void append(const Tensor& tensor) { register_parameter(std::to_string(size()), tensor, tensor.requires_grad()); }
  void append(const Item& item) { append(item.value()); }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& tensor : container) append(tensor);
  }
  template <class Container>
  ParameterListImpl& operator+=(const Container& container) {
    extend(container);
    return *this;
  }

  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  Tensor& at(size_t index) {
    TORCH_CHECK(index < size(), "Index out of range");
    return parameters_[std::to_string(index)];
  }
  const Tensor& at(size_t index) const { return const_cast<ParameterListImpl*>(this)->at(index); }
  Tensor& operator[](size_t index) { return at(index); }
  const Tensor& operator[](size_t index) const { return at(index); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
};
TORCH_MODULE(ParameterList);

/// Parameters by name. A tensor that does not require grad stays so.
class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) { parameters_ = parameters; }

  void reset() override {}
  void pretty_print(std::ostream& stream) const override {
    detail::print_parameters(stream, "torch::nn::ParameterDict", parameters_);
  }

  Tensor& insert(const std::string& key, const Tensor& tensor) {
    return register_parameter(key, tensor, tensor.requires_grad());
  }
  /// Removes and returns a parameter.
  Tensor pop(const std::string& key) {
    const Tensor tensor = parameters_[key];
    parameters_.erase(key);
    return tensor;
  }
  std::vector<std::string> keys() const { return parameters_.keys(); }
  std::vector<Tensor> values() const { return parameters_.values(); }
  Iterator begin() { return parameters_.begin(); }
  ConstIterator begin() const { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator end() const { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  /// Adds parameters, or puts them in the place of those of the same name.
  template <class Container>
  void update(const Container& container) {
    for (const auto& item : container) {
      if (Tensor* const found = parameters_.find(item.key())) *found = item.value();
      else insert(item.key(), item.value());
    }
  }
  void clear() { parameters_.clear(); }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  Tensor& get(const std::string& key) { return parameters_[key]; }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  const Tensor& operator[](const std::string& key) const { return parameters_[key]; }
};
TORCH_MODULE(ParameterDict);

/// A function of a tensor in a module's place: Functional(torch::relu), Functional(torch::elu, 1, 0, 1).
class FunctionalImpl : public Cloneable<FunctionalImpl> {
 public:
  using Function = std::function<Tensor(Tensor)>;

  explicit FunctionalImpl(Function function) : function_(std::move(function)) {}
  /// Binds the arguments behind the tensor.
  template <class F, class... A>
    requires(sizeof...(A) > 0)
  explicit FunctionalImpl(F function, A&&... arguments)
      : function_(std::bind(function, std::placeholders::_1, std::forward<A>(arguments)...)) {}

  void reset() override {}
  void pretty_print(std::ostream& stream) const override { stream << "torch::nn::Functional()"; }
  Tensor forward(Tensor input) { return function_(std::move(input)); }
  Tensor operator()(Tensor input) { return forward(std::move(input)); }
  bool is_serializable() const override { return false; }

 private:
  Function function_;
};
TORCH_MODULE(Functional);

}  // namespace torch::nn
