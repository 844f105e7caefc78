// ModuleHolder: the handle by which programs hold a module. TORCH_MODULE(Net) makes `Net` the handle of `NetImpl`:
//
//   struct NetImpl : torch::nn::Module { ... };
//   TORCH_MODULE(Net);
//   Net net(1, 2);      // makes a NetImpl(1, 2); copies of `net` are the same module
//   net->parameters();
//   Net later{nullptr};  // holds none yet
#pragma once
#include <concepts>
#include <memory>
#include <ostream>
#include <type_traits>
#include <utility>

#include <torch/types.h>

namespace torch {
namespace detail {

/// The base that tells handles from other types.
struct ModuleHolderIndicator {};

template <class T>
using is_module_holder = std::is_base_of<ModuleHolderIndicator, std::decay_t<T>>;
template <class T>
using disable_if_module_holder_t = std::enable_if_t<!is_module_holder<T>::value>;

/// A handle of a C.
template <class T, class C>
concept HolderOf = is_module_holder<T>::value && std::same_as<typename std::decay_t<T>::ContainedType, std::decay_t<C>>;

}  // namespace detail

namespace nn {

/// A shared pointer to a module, which is called as a function: `net(x)` is `net->forward(x)`.
template <class Contained>
class ModuleHolder : torch::detail::ModuleHolderIndicator {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(std::make_shared<Contained>()) {
    static_assert(std::is_default_constructible_v<Contained>,
                  "this module has no default constructor: give its arguments, or hold none yet with {nullptr}");
  }
  ModuleHolder(std::nullptr_t) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}
  /// Makes the module from its constructor's arguments.
  template <class First, class... Rest>
    requires(!(sizeof...(Rest) == 0 && torch::detail::HolderOf<First, Contained>))
  explicit ModuleHolder(First&& first, Rest&&... rest)
      : impl_(new Contained(std::forward<First>(first), std::forward<Rest>(rest)...)) {}

  bool is_empty() const noexcept { return impl_ == nullptr; }
  explicit operator bool() const noexcept { return impl_ != nullptr; }
  Contained* get() { return ptr().get(); }
  const Contained* get() const { return ptr().get(); }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  /// Returns the module. Error: this holds none.
  const std::shared_ptr<Contained>& ptr() const {
    TORCH_CHECK(impl_ != nullptr, "Accessing empty ModuleHolder");
    return impl_;
  }

  template <class... A, class M = Contained>
  auto operator()(A&&... arguments) -> decltype(std::declval<M&>().forward(std::forward<A>(arguments)...)) {
    return get()->forward(std::forward<A>(arguments)...);
  }
  template <class A>
  decltype(auto) operator[](A&& at) {
    return (*get())[std::forward<A>(at)];
  }

 protected:
  std::shared_ptr<Contained> impl_;
};

/// Prints the module; text and archives follow from this one.
template <class Contained>
std::ostream& operator<<(std::ostream& to, const ModuleHolder<Contained>& module) {
  return to << *module;
}

}  // namespace nn
}  // namespace torch

/// Defines Name, the handle of an ImplType.
#define TORCH_MODULE_IMPL(Name, ImplType)                \
  class Name : public torch::nn::ModuleHolder<ImplType> { \
   public:                                               \
    using torch::nn::ModuleHolder<ImplType>::ModuleHolder; \
    using Impl [[maybe_unused]] = ImplType;              \
  }

/// Defines Name, the handle of a NameImpl.
#define TORCH_MODULE(Name) TORCH_MODULE_IMPL(Name, Name##Impl)
