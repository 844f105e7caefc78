// The fields of a layer's options: their names and values, for the layer's repr and for callers that give them by name.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vesta/core/tensor.h>
#include <vesta/nn/python_repr.h>

/// Names the members of an options struct, in the order of the layer's arguments in Python. An options struct may have
/// a `shown` too, its form in a repr: `{name}` is the value (one number where a size is the same in all dimensions, a
/// string without quotes), `{*name}` the value as Python writes it (a tuple, a quoted string), and a part in `[...]` is
/// omitted where all its fields have their defaults. Without it: `name=value` of all fields. `required` is the number
/// of first fields without a default: the layer's constructor takes no fewer arguments. `with_fields(f)` returns
/// f(values...).
#define VESTA_FIELDS(...)                                        \
  static constexpr std::string_view field_names = #__VA_ARGS__; \
  template <class F>                                             \
  decltype(auto) with_fields(F&& f) {                            \
    return f(__VA_ARGS__);                                       \
  }                                                              \
  template <class F>                                             \
  decltype(auto) with_fields(F&& f) const {                      \
    return f(__VA_ARGS__);                                       \
  }

namespace vesta::nn {

/// A size in each of n dimensions: one number for all, or one for each.
template <size_t n>
struct Ints {
  std::array<int64_t, n> v{};
  Ints() = default;
  Ints(int64_t all) { v.fill(all); }
  template <std::convertible_to<int64_t>... I>
    requires(sizeof...(I) == n && n > 1)
  Ints(I... each) : v{int64_t(each)...} {}
  operator IntList() const { return IntSpan(v); }
  bool operator==(const Ints&) const = default;
};
using Pair = Ints<2>;
using Triple = Ints<3>;

/// A size in each of n dimensions, none for that of the input.
template <size_t n>
struct MaybeInts {
  std::array<MaybeInt, n> v{};
  MaybeInts() = default;
  MaybeInts(int64_t all) { v.fill(all); }
  template <std::convertible_to<MaybeInt>... I>
    requires(sizeof...(I) == n && n > 1)
  MaybeInts(I... each) : v{MaybeInt(each)...} {}
  bool operator==(const MaybeInts&) const = default;
};

/// A shape: one size, or several in braces.
struct Shape {
  std::vector<int64_t> v;
  Shape() = default;
  Shape(int64_t one) : v{one} {}
  Shape(std::initializer_list<int64_t> sizes) : v(sizes) {}
  Shape(std::vector<int64_t> sizes) : v(std::move(sizes)) {}
  operator IntList() const { return v; }
  bool operator==(const Shape&) const = default;
};

/// Sizes or factors of a grid of 1 to 3 dimensions: one for all, or one for each.
template <class T>
struct PerDimension {
  std::vector<T> v;  // one, or one for each dimension
  PerDimension() = default;
  PerDimension(T all) : v{all} {}
  PerDimension(std::initializer_list<T> each) : v(each) {}
  PerDimension(std::vector<T> each) : v(std::move(each)) {}
  bool operator==(const PerDimension&) const = default;
};

/// The options of a layer that has none.
struct NoOptions {
  static constexpr std::string_view field_names = "";
  template <class F>
  decltype(auto) with_fields(F&& f) const {
    return f();
  }
};

namespace detail {

/// A field in a repr: as `{name}` and as `{*name}`.
struct Shown {
  std::string brief, full;
  Shown(std::string both) : brief(both), full(std::move(both)) {}
  Shown(std::string b, std::string f) : brief(std::move(b)), full(std::move(f)) {}
};
}  // namespace detail

VESTA_API detail::Shown shown_ints(IntSpan v);
template <class T>
  requires(std::is_arithmetic_v<T>)
detail::Shown shown(T v) {
  if constexpr (std::same_as<T, bool>) return std::string(python_repr(v));
  else if constexpr (std::is_integral_v<T>) return std::to_string(v);
  else return python_repr(double(v));
}
inline detail::Shown shown(const std::string& s) { return {s, "'" + s + "'"}; }
inline detail::Shown shown(const Tensor& t) { return std::string(t.defined() ? "Tensor" : "None"); }
/// Shows a list as the tuple that it is in Python.
VESTA_API detail::Shown shown(const Shape& v);
VESTA_API detail::Shown shown(const PerDimension<int64_t>& v);
VESTA_API detail::Shown shown(const PerDimension<double>& v);
VESTA_API detail::Shown shown_maybe_ints(std::span<const MaybeInt> v);
template <size_t n>
detail::Shown shown(const MaybeInts<n>& v) {
  return shown_maybe_ints(v.v);
}
template <class T>
detail::Shown shown(const std::shared_ptr<T>& module) {
  return std::string(module ? "Module" : "None");
}
template <size_t n>
detail::Shown shown(const Ints<n>& v) {
  return shown_ints(v.v);
}
template <class T>
detail::Shown shown(const std::optional<T>& v) {
  return v ? shown(*v) : detail::Shown("None");
}

namespace detail {

inline bool is_same(const Tensor& a, const Tensor& b) { return !a.defined() && !b.defined(); }
template <class T>
bool is_same(const T& a, const T& b) {
  return a == b;
}

/// One field of an options struct.
struct FieldText {
  Shown value;
  bool is_default;
};
/// Writes `shown` with the fields of these names; see VESTA_FIELDS.
VESTA_API std::string write_fields(std::string_view shown, std::string_view names,
                                   const std::vector<FieldText>& fields);

}  // namespace detail

/// Splits the names of VESTA_FIELDS.
VESTA_API std::vector<std::string_view> split_names(std::string_view names);

/// Returns the options as Python prints them in the layer's repr.
template <class Options>
std::string described(const Options& options) {
  const Options defaults{};
  const auto texts = options.with_fields([&](const auto&... values) {
    return defaults.with_fields([&](const auto&... usual) {
      return std::vector<detail::FieldText>{detail::FieldText{shown(values), detail::is_same(values, usual)}...};
    });
  });
  std::string_view format;
  if constexpr (requires { Options::shown; }) format = Options::shown;
  return detail::write_fields(format, Options::field_names, texts);
}

}  // namespace vesta::nn
