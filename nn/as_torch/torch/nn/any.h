// AnyModule: a module of any class and signature, called with values whose types are known only when the program
// runs. Sequential is a list of them.
#pragma once
#include <array>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <torch/nn/any_value.h>
#include <torch/nn/module.h>

namespace torch::nn {

/// The call of an M whose forward() takes these arguments, the last of which may have defaults.
template <class M, class... Arguments>
struct AnyModuleHolder {
  /// Calls forward() with the given values. Error: another number of them, or one of another type.
  static AnyValue forward(Module& module, std::span<AnyValue> given) {
    return with_first<sizeof...(Arguments)>(static_cast<M&>(module), given);
  }

 private:
  template <size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<Arguments...>>;

  template <size_t... i>
  static constexpr bool accepts(std::index_sequence<i...>) {
    return requires(M& m) { m.forward(std::declval<std::decay_t<Argument<i>>>()...); };
  }
  template <size_t n>
  static constexpr size_t required() {
    if constexpr (n > 0) {
      if constexpr (accepts(std::make_index_sequence<n - 1>())) return required<n - 1>();
    }
    return n;
  }
  template <size_t n>
  static AnyValue with_first(M& module, std::span<AnyValue> given) {
    constexpr size_t most = sizeof...(Arguments), least = required<most>();
    if (given.size() == n) return call(module, given, std::make_index_sequence<n>());
    if constexpr (n > least) {
      if (given.size() < n) return with_first<n - 1>(module, given);
    }
    const std::string who = c10::demangle(typeid(M).name()) + "'s forward() method expects ";
    TORCH_CHECK(least == most, who, "at least ", least, " argument(s) and at most ", most,
                " argument(s), but received ", given.size(), ".");
    TORCH_CHECK(false, who, most, " argument(s), but received ", given.size(), ".");
  }
  template <size_t... i>
  static AnyValue call(M& module, std::span<AnyValue> given, std::index_sequence<i...>) {
    return AnyValue(module.forward(std::move(taken<Argument<i>>(given[i], i))...));
  }
  template <class T>
  static std::decay_t<T>& taken(AnyValue& value, size_t index) {
    if (auto* found = value.template try_get<std::decay_t<T>>()) return *found;
    TORCH_CHECK(false, "Expected argument #", index, " to be of type ", c10::demangle(typeid(T).name()),
                ", but received value of type ", c10::demangle(value.type_info().name()));
  }
};

namespace detail {

using AnyForward = AnyValue (*)(Module&, std::span<AnyValue>);

template <class M, class R, class... A>
constexpr AnyForward any_forward_of_signature() {
  static_assert(((!std::is_lvalue_reference_v<A> || std::is_const_v<std::remove_reference_t<A>>) && ...),
                "Modules stored inside AnyModule must not take references. Use pointers instead.");
  static_assert(!std::is_void_v<R>, "AnyModule cannot store modules that return void (you can return a dummy value).");
  return AnyModuleHolder<M, A...>::forward;
}
template <class M, class C, class R, class... A>
constexpr AnyForward any_forward_of(R (C::*)(A...)) {
  return any_forward_of_signature<M, R, A...>();
}
template <class M, class C, class R, class... A>
constexpr AnyForward any_forward_of(R (C::*)(A...) const) {
  return any_forward_of_signature<M, R, A...>();
}
/// Returns the call of an M. One whose forward() is a template, such as Sequential, takes one tensor.
template <class M>
constexpr AnyForward any_forward_of() {
  static_assert(std::derived_from<M, Module>, "Can only store object derived from nn::Module into AnyModule");
  if constexpr (requires { any_forward_of<M>(&M::forward); }) return any_forward_of<M>(&M::forward);
  else return AnyModuleHolder<M, Tensor>::forward;
}

}  // namespace detail

/// A shared pointer to a module of any class, or none; copies are the same module.
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
  explicit AnyModule(std::shared_ptr<M> module)
      : forward_(detail::any_forward_of<M>()), type_(&typeid(M)), module_(std::move(module)) {}
  template <class M>
    requires(torch::detail::is_module<M>::value)
  explicit AnyModule(M&& module) : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& module) : AnyModule(module.ptr()) {}
  template <class M>
  AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }

  /// Makes an independent copy of the module.
  AnyModule clone(std::optional<Device> device = std::nullopt) const {
    AnyModule copy = *this;
    if (module_) copy.module_ = module_->clone(device);
    return copy;
  }
  /// Calls the module's forward(). Error: the arguments are not exactly of its types.
  template <class... A>
  AnyValue any_forward(A&&... arguments) {
    check("forward");
    std::array<AnyValue, sizeof...(A)> values{AnyValue(std::forward<A>(arguments))...};
    return forward_(*module_, values);
  }
  /// Calls the module's forward(), which returns a Result.
  template <class Result = Tensor, class... A>
  Result forward(A&&... arguments) {
    return any_forward(std::forward<A>(arguments)...).template get<Result>();
  }

  /// Returns the module, as the class (or handle) with which it was put in. Error: that is another one.
  template <class M>
    requires(torch::detail::is_module<M>::value)
  M& get() {
    check("get");
    return cast<M>();
  }
  template <class M>
    requires(torch::detail::is_module<M>::value)
  const M& get() const {
    check("get");
    return cast<M>();
  }
  template <class Holder, class Contained = typename Holder::ContainedType>
  Holder get() const {
    return Holder(ptr<Contained>());
  }
  std::shared_ptr<Module> ptr() const {
    check("ptr");
    return module_;
  }
  template <class M>
    requires(torch::detail::is_module<M>::value)
  std::shared_ptr<M> ptr() const {
    check("ptr");
    return std::shared_ptr<M>(module_, &cast<M>());
  }
  const std::type_info& type_info() const {
    check("type_info");
    return *type_;
  }
  bool is_empty() const noexcept { return module_ == nullptr; }

 private:
  void check(const char* method) const {
    TORCH_CHECK(module_ != nullptr, "Cannot call ", method, "() on an empty AnyModule");
  }
  template <class M>
  M& cast() const {
    TORCH_CHECK(*type_ == typeid(M), "Attempted to cast module of type ", c10::demangle(type_->name()), " to type ",
                c10::demangle(typeid(M).name()));
    return static_cast<M&>(*module_);
  }

  detail::AnyForward forward_ = nullptr;
  const std::type_info* type_ = nullptr;
  std::shared_ptr<Module> module_;
};

/// A module with a name, for Sequential.
class NamedAnyModule {
 public:
  template <class M>
    requires std::constructible_from<AnyModule, M&&>
  NamedAnyModule(std::string name, M&& module) : name_(std::move(name)), module_(std::forward<M>(module)) {}

  const std::string& name() const noexcept { return name_; }
  AnyModule& module() noexcept { return module_; }
  const AnyModule& module() const noexcept { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

}  // namespace torch::nn

/// Says that the last parameters of forward() have these defaults. Nothing is made of them, the compiler knows the
/// defaults: a forward() that is not public may be called by AnyModule.
#define FORWARD_HAS_DEFAULT_ARGS(...)  \
  template <class M, class... A>       \
  friend struct torch::nn::AnyModuleHolder;
