// Value: what goes into a module or comes out of it, where its type is known only when the program runs: in hooks, in
// Sequential, in callers from Python.
#pragma once
#include <any>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::nn {

class Value;
/// A list of Values: the inputs of a call, or a result of several parts.
using Values = std::vector<Value>;

/// Nothing (Python's None), a tensor, a number, a string, a list of Values, or anything else that can be copied.
/// `Value(x)` takes tuples, vectors, arrays and optionals apart; `v.to<T>()` puts them together again.
class VESTA_API Value {
 public:
  Value() = default;
  Value(const Tensor& t) {
    if (t.defined()) held_ = t;
  }
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Value> && !std::derived_from<T, Tensor>)
  Value(const T& given) {
    set(given);
  }

  bool has_value() const { return held_.index() != 0; }
  bool is_tensor() const { return std::holds_alternative<Tensor>(held_); }
  bool is_list() const { return std::holds_alternative<Values>(held_); }
  /// Returns the tensor. TypeError: this is none.
  const Tensor& tensor() const {
    if (const auto* t = std::get_if<Tensor>(&held_)) return *t;
    refuse("a tensor");
  }
  /// Returns the parts of a list. TypeError: this is none.
  const Values& list() const {
    if (const auto* l = std::get_if<Values>(&held_)) return *l;
    refuse("a list of values");
  }
  /// Calls `f` with what is held: nothing as std::monostate, a Tensor, bool, int64_t, double, std::string, Values or
  /// std::any.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), held_);
  }
  /// Returns the value as a T: a Tensor (undefined for nothing), a number, a string, or an optional, vector, array,
  /// pair or tuple of such; for other types the T that was given. TypeError: it is something else.
  template <class T>
  T to() const;

 private:
  template <class T>
  void set(const T& given);
  template <class Tuple, size_t... i>
  Tuple tuple_of(std::index_sequence<i...>) const;
  /// Raises: `wanted` was expected.
  [[noreturn]] void refuse(const char* wanted) const;

  std::variant<std::monostate, Tensor, bool, int64_t, double, std::string, Values, std::any> held_;
};

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; };
}  // namespace detail

template <class T>
void Value::set(const T& given) {
  if constexpr (std::same_as<T, std::nullopt_t> || std::same_as<T, std::nullptr_t>) {
    held_ = std::monostate();
  } else if constexpr (std::same_as<T, MaybeTensor>) {
    if (given.defined()) held_ = *given;
  } else if constexpr (std::same_as<T, bool>) {
    held_ = given;
  } else if constexpr (std::is_pointer_v<std::decay_t<T>> && std::is_convertible_v<const T&, const char*>) {
    if (const char* const text = given) held_ = std::string(text);
  } else if constexpr (std::is_integral_v<T>) {
    held_ = int64_t(given);
  } else if constexpr (std::is_floating_point_v<T>) {
    held_ = double(given);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    held_ = std::string(std::string_view(given));
  } else if constexpr (detail::is_optional<T>) {
    if (given) *this = Value(*given);
  } else if constexpr (detail::is_vector<T>) {
    Values parts;
    for (const auto& part : given) parts.emplace_back(part);
    held_ = std::move(parts);
  } else if constexpr (detail::TupleLike<T>) {
    held_ = std::apply([](const auto&... parts) { return Values{Value(parts)...}; }, given);
  } else {
    static_assert(std::is_copy_constructible_v<T>, "what goes through hooks or Sequential must be copyable");
    held_ = std::any(given);
  }
}

template <class Tuple, size_t... i>
Tuple Value::tuple_of(std::index_sequence<i...>) const {
  const Values& parts = list();
  if (parts.size() != sizeof...(i)) refuse("a list of another length");
  return Tuple{parts[i].to<std::tuple_element_t<i, Tuple>>()...};
}

template <class T>
T Value::to() const {
  if constexpr (std::same_as<T, Value>) {
    return *this;
  } else if constexpr (std::same_as<T, Tensor>) {
    return has_value() ? tensor() : Tensor();
  } else if constexpr (std::same_as<T, MaybeTensor>) {
    return has_value() ? MaybeTensor(tensor()) : MaybeTensor();
  } else if constexpr (std::same_as<T, bool>) {
    if (const auto* b = std::get_if<bool>(&held_)) return *b;
    refuse("a bool");
  } else if constexpr (std::is_integral_v<T>) {
    if (const auto* n = std::get_if<int64_t>(&held_)) return T(*n);
    refuse("an integer");
  } else if constexpr (std::is_floating_point_v<T>) {
    if (const auto* n = std::get_if<int64_t>(&held_)) return T(*n);
    if (const auto* x = std::get_if<double>(&held_)) return T(*x);
    refuse("a number");
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    if (const auto* s = std::get_if<std::string>(&held_)) return T(*s);
    refuse("a text");
  } else if constexpr (detail::is_optional<T>) {
    return has_value() ? T(to<typename T::value_type>()) : T();
  } else if constexpr (detail::is_vector<T>) {
    T parts;
    for (const Value& part : list()) parts.push_back(part.to<typename T::value_type>());
    return parts;
  } else if constexpr (detail::TupleLike<T>) {
    return tuple_of<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    if (const auto* any = std::get_if<std::any>(&held_)) {
      if (const T* found = std::any_cast<T>(any)) return *found;
    }
    refuse("a value of another type");
  }
}

}  // namespace vesta::nn
