// What the layers of torch::nn share: constructors from options or their arguments, and their texts.
#pragma once
#include <concepts>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include <torch/nn/any.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/functional/arguments.h>
#include <torch/nn/init.h>
#include <torch/nn/pimpl.h>

namespace torch::nn {
namespace detail {

/// Arguments from which options are made, but not those options themselves.
template <class Options, class... A>
concept OptionsFrom = std::constructible_from<Options, A...> &&
                      !(sizeof...(A) == 1 && (std::same_as<std::remove_cvref_t<A>, Options> && ...));

/// The options of a layer that has none.
struct NoOptions {};

/// Prints a layer: `torch::nn::NAME(parts)`.
template <class... Parts>
void print_layer(std::ostream& to, const char* name, const Parts&... parts) {
  to << std::boolalpha << "torch::nn::" << name << '(';
  (to << ... << parts) << ')';
}
/// Returns the text of an option in a list, where it is not the usual one.
inline std::string if_in_place(bool inplace, const char* before = ", ") {
  return inplace ? std::string(before) + "inplace=true" : std::string();
}

/// A layer without parameters: `Self` adds forward() and pretty_print().
template <class Self, class Options = NoOptions>
class PlainLayer : public Cloneable<Self> {
 public:
  explicit PlainLayer(const Options& given) : options(given) {}
  template <class... A>
    requires OptionsFrom<Options, A...>
  explicit PlainLayer(A&&... arguments) : options(std::forward<A>(arguments)...) {}
  void reset() override {}

  Options options;
};

}  // namespace detail

/// Declares the constructors of a layer that registers something in reset(), and its options.
#define TORCH_LAYER_OPTIONS(Impl, Options)                               \
  explicit Impl(const Options& given) : options(given) { Impl::reset(); } \
  template <class... A>                                                  \
    requires torch::nn::detail::OptionsFrom<Options, A...>               \
  explicit Impl(A&&... arguments) : Impl(Options(std::forward<A>(arguments)...)) {} \
  Options options

/// Declares the text of a layer: its parts, one after the other.
#define TORCH_LAYER_TEXT(Name, ...)                                              \
  void pretty_print(std::ostream& stream) const override {                       \
    torch::nn::detail::print_layer(stream, Name __VA_OPT__(, ) __VA_ARGS__);     \
  }

/// Defines a layer without parameters over a function of one tensor: its result, and the parts of its text.
#define TORCH_PLAIN_LAYER(Name, Options, result, ...)                     \
  class Name##Impl : public detail::PlainLayer<Name##Impl, Options> {     \
   public:                                                                \
    using PlainLayer::PlainLayer;                                         \
    Tensor forward(const Tensor& input) { return result; }                \
    TORCH_LAYER_TEXT(#Name __VA_OPT__(, ) __VA_ARGS__)                    \
  };                                                                      \
  TORCH_MODULE(Name)

/// Defines NAME1d, NAME2d and NAME3d over BASE<D, Self>.
#define TORCH_LAYERS_OF_DIMENSIONS(Name, Base) \
  TORCH_LAYER_OF_DIMENSION(Name, Base, 1);     \
  TORCH_LAYER_OF_DIMENSION(Name, Base, 2);     \
  TORCH_LAYER_OF_DIMENSION(Name, Base, 3)
#define TORCH_LAYER_OF_DIMENSION(Name, Base, D)                     \
  class Name##D##dImpl : public Base<D, Name##D##dImpl> {           \
   public:                                                          \
    using Base<D, Name##D##dImpl>::Base;                            \
  };                                                                \
  TORCH_MODULE(Name##D##d)

}  // namespace torch::nn
