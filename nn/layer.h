// ModuleOf and LayerOf: the bases of modules whose forward() has any signature. A tour:
//
//   struct Translator : nn::ModuleOf<Translator> {
//     std::shared_ptr<nn::LSTM> lstm = register_module("lstm", nn::make<nn::LSTM>(64, 128));
//     std::tuple<Tensor, nn::LSTMState> forward(const Tensor& x, const std::optional<nn::LSTMState>& state = {}) {
//       return (*lstm)(x, state);
//     }
//   };
//   auto [y, state] = (*net)(x);
//
// A layer with options names their fields once; its repr, its copies and its constructor's arguments follow:
//
//   struct SoftshrinkOptions {
//     double lambd = 0.5;
//     VESTA_FIELDS(lambd)
//     static constexpr std::string_view shown = "{lambd}";
//   };
//   struct Softshrink : nn::LayerOf<Softshrink, SoftshrinkOptions> {
//     using LayerOf::LayerOf;
//     Tensor forward(const Tensor& input) override { return softshrink(input, options.lambd); }
//   };
#pragma once
#include <memory>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include <vesta/nn/fields.h>
#include <vesta/nn/init.h>
#include <vesta/nn/module.h>

namespace vesta::nn {
namespace detail {

/// The class, result and arguments of a member function.
template <class F>
struct Signature;
template <class C, class R, class... A>
struct Signature<R (C::*)(A...)> {
  using Class = C;
  using Result = R;
  using Arguments = std::tuple<A...>;
};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) noexcept> : Signature<R (C::*)(A...)> {};
template <class C, class R, class... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (C::*)(A...)> {};
template <class... A>
std::tuple<std::remove_cvref_t<A>...> kept(std::tuple<A...>*);
/// A forward() that is not overloaded: its signature is known.
template <class Self>
concept OneForward = requires { typename Signature<decltype(&Self::forward)>::Arguments; };
/// The types of its arguments, without references.
template <class Self>
using Inputs = decltype(kept(static_cast<typename Signature<decltype(&Self::forward)>::Arguments*>(nullptr)));

/// The number of required fields of an options struct, which come first.
template <class Options>
constexpr size_t required = 0;
template <class Options>
  requires requires { Options::required; }
constexpr size_t required<Options> = Options::required;

/// Arguments that begin the fields of an options struct.
template <class Options, class First, class... A>
concept Positional =
    1 + sizeof...(A) >= required<Options> && !std::same_as<std::remove_cvref_t<First>, Options> &&
    !std::derived_from<std::remove_cvref_t<First>, Module> &&
    requires(First&& first, A&&... rest) { Options{std::forward<First>(first), std::forward<A>(rest)...}; };

}  // namespace detail

/// The base of a module `Self` whose forward() has any signature. Calls, hooks, Sequential and clone() follow from
/// it. clone() needs a constructor that takes `options`, or none; forward() must not be overloaded to have hooks
/// or to stand in a Sequential.
template <class Self>
class VESTA_API ModuleOf : public Module {
 public:
  /// Calls forward() between the hooks. The module's repr is added to an error on the way.
  template <class... A>
  auto operator()(A&&... arguments) {
    using Result = decltype(self().forward(std::forward<A>(arguments)...));
    static_assert(!std::is_void_v<Result>, "forward() must return the module's output");
    return in_context([&]() -> Result {
      check_inputs(std::index_sequence_for<A...>(), arguments...);
      if (!has_hooks()) return self().forward(std::forward<A>(arguments)...);
      Values inputs = values_of(std::index_sequence_for<A...>(), std::forward<A>(arguments)...);
      run_pre_hooks(inputs);
      Value output = call(inputs);
      run_hooks(inputs, output);
      return output.to<Result>();
    });
  }
  /// Calls forward(), whatever its signature is, with one tensor.
  Tensor forward(const Tensor& input) override {
    const Value given(input);
    return call({&given, 1}).tensor();
  }
  /// Returns the name of the class Self, in constructors too.
  static std::string name() { return class_name(typeid(Self)); }
  std::shared_ptr<Module> clone() const override {
    if (typeid(*this) != typeid(Self)) return Module::clone();  // a class that derives from Self, which has more
    const init::Skip skip;  // the copy gets these values
    Self* copy = nullptr;
    if constexpr (requires(const Self& from) { Self(from.options); }) {
      copy = new Self(static_cast<const Self&>(*this).options);
    } else if constexpr (std::is_default_constructible_v<Self>) {
      copy = new Self();
    } else {
      return Module::clone();
    }
    std::shared_ptr<Module> owner(static_cast<Module*>(copy));  // not make_shared<Self>: it would be compiled per layer
    copy->copy_tree(*this);
    return owner;
  }

 protected:
  Value call(std::span<const Value> inputs) override {
    if constexpr (detail::OneForward<Self>) {
      using Found = detail::Signature<decltype(&Self::forward)>;
      if constexpr (std::is_same_v<typename Found::Class, ModuleOf>) {
        return Module::forward({});  // which reports that there is none
      } else {
        return call_with<typename Found::Arguments, std::tuple_size_v<typename Found::Arguments>>(inputs);
      }
    } else {
      fail(Cause::type, kind(), ": its forward() is overloaded, and the types of its inputs are known only now. ",
           "Override call().");
    }
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }

  /// Raises where forward() takes a tensor and gets an undefined one.
  template <size_t... i, class... A>
  void check_inputs(std::index_sequence<i...>, const A&... arguments) const {
    if constexpr (detail::OneForward<Self>) (check_input<i>(arguments), ...);
  }
  template <size_t i, class T>
  void check_input(const T& argument) const {
    if constexpr (std::same_as<T, Tensor> && std::same_as<std::tuple_element_t<i, detail::Inputs<Self>>, Tensor>) {
      check_defined(argument.defined(), i);
    }
  }
  void check_defined(bool defined, size_t i) const {
    if (!defined) fail_undefined_input(i);
  }
  /// Holds the inputs as the types that forward() declares.
  template <size_t... i, class... A>
  Values values_of(std::index_sequence<i...>, A&&... arguments) {
    if constexpr (detail::OneForward<Self>) {
      using Kept = detail::Inputs<Self>;
      return Values{Value(std::tuple_element_t<i, Kept>(std::forward<A>(arguments)))...};
    } else {
      return Values{Value(arguments)...};
    }
  }
  /// Calls forward() with the first inputs, as elements of Kept.
  template <class Kept, size_t... i>
  Value with(std::span<const Value> inputs, std::index_sequence<i...>) {
    (check_defined(inputs[i].has_value() || !std::same_as<std::tuple_element_t<i, Kept>, Tensor>, i), ...);
    return self().forward(inputs[i].template to<std::tuple_element_t<i, Kept>>()...);
  }
  /// Calls forward() with as many inputs as there are, at most n; the rest have their defaults.
  template <class Arguments, size_t n>
  Value call_with(std::span<const Value> inputs) {
    using Kept = decltype(detail::kept(static_cast<Arguments*>(nullptr)));
    if (inputs.size() == n) {
      if constexpr (is_enough<Arguments>(std::make_index_sequence<n>())) {
        return with<Kept>(inputs, std::make_index_sequence<n>());
      }
    } else if constexpr (n > 0) {
      if (inputs.size() < n) return call_with<Arguments, n - 1>(inputs);
    }
    fail(Cause::type, kind(), ": expected ", std::tuple_size_v<Arguments>, " inputs, got ", inputs.size(), ".");
  }
  template <class Arguments, size_t... i>
  static constexpr bool is_enough(std::index_sequence<i...>) {
    return requires(Self& s) { s.forward(std::declval<std::tuple_element_t<i, Arguments>>()...); };
  }
};

/// The base of a layer with options (an aggregate with VESTA_FIELDS). `nn::Conv2d(3, 8, 3)` gives the first fields,
/// `nn::Conv2d({.in_channels = 3, .out_channels = 8, .kernel_size = 3})` names them.
template <class Self, class Options_ = NoOptions>
class VESTA_API LayerOf : public ModuleOf<Self> {
 public:
  using Options = Options_;
  LayerOf()
    requires std::is_default_constructible_v<Options>
  = default;
  explicit LayerOf(Options o) : options(std::move(o)) {}
  template <class First, class... A>
    requires detail::Positional<Options, First, A...>
  explicit LayerOf(First&& first, A&&... rest) : options{std::forward<First>(first), std::forward<A>(rest)...} {}

  std::string extra_repr() const override { return described(options); }

  const Options options{};
};

/// Declares the constructors of a layer that does something in them: with `options`, and with its first fields.
#define VESTA_LAYER_CONSTRUCTORS(Name)                                                      \
  explicit Name(Options options);                                                           \
  template <class First, class... A>                                                        \
    requires detail::Positional<Options, First, A...>                                       \
  explicit Name(First&& first, A&&... rest)                                                 \
      : Name(Options{std::forward<First>(first), std::forward<A>(rest)...}) {}

/// Defines NAME1d, NAME2d and NAME3d over BASE<Self, n>.
#define VESTA_LAYERS_OF_DIMENSIONS(Name, Base)        \
  struct VESTA_API Name##1d : Base<Name##1d, 1> {     \
    using Base::Base;                                 \
  };                                                  \
  struct VESTA_API Name##2d : Base<Name##2d, 2> {     \
    using Base::Base;                                 \
  };                                                  \
  struct VESTA_API Name##3d : Base<Name##3d, 3> {     \
    using Base::Base;                                 \
  }

}  // namespace vesta::nn
