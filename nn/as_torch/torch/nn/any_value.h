// AnyValue: what goes into a module or comes out of it, where its type is known only when the program runs.
#pragma once
#include <any>
#include <concepts>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <torch/demangle.h>
#include <torch/types.h>

namespace torch::nn {

/// A value of any type that can be copied. It is taken out again as exactly the type that was put in.
class AnyValue {
 public:
  template <class T>
    requires(!std::same_as<std::decay_t<T>, AnyValue>)
  explicit AnyValue(T&& value) : held_(std::in_place_type<std::decay_t<T>>, std::forward<T>(value)) {}

  /// Returns the value, or null where it is of another type.
  template <class T>
  T* try_get() {
    static_assert(std::same_as<T, std::decay_t<T>>, "AnyValue holds values: ask for the type without a reference");
    return std::any_cast<T>(&held_);
  }
  /// Returns the value. Error: it is of another type.
  template <class T>
  T get() {
    if (T* value = try_get<T>()) return *value;
    TORCH_CHECK(false, "Attempted to cast AnyValue to ", c10::demangle(typeid(T).name()), ", but its actual type is ",
                c10::demangle(type_info().name()));
  }
  const std::type_info& type_info() const noexcept { return held_.type(); }

 private:
  std::any held_;
};

}  // namespace torch::nn
