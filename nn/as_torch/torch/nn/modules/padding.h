// Padding as layers.
#pragma once
#include <torch/nn/functional/padding.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// Defines NAMEImpl<D, Self>, a padding with values of this mode of pad(), and its layers.
#define TORCH_PAD_LAYERS(Name, mode)                                                                          \
  template <size_t D, class Derived>                                                                          \
  class Name##Impl : public detail::PlainLayer<Derived, Name##Options<D>> {                                   \
   public:                                                                                                    \
    using detail::PlainLayer<Derived, Name##Options<D>>::PlainLayer;                                          \
    Name##Impl(ExpandingArray<D * 2> padding) : Name##Impl(Name##Options<D>(padding)) {}                      \
    Tensor forward(const Tensor& input) {                                                                     \
      return vesta::pad(input, functional::detail::list(this->options.padding()), mode);                      \
    }                                                                                                         \
    void pretty_print(std::ostream& stream) const override {                                                  \
      stream << "torch::nn::" #Name << D << "d(padding=" << this->options.padding() << ')';                   \
    }                                                                                                         \
  };                                                                                                          \
  TORCH_LAYERS_OF_DIMENSIONS(Name, Name##Impl)
TORCH_PAD_LAYERS(ReflectionPad, "reflect");
TORCH_PAD_LAYERS(ReplicationPad, "replicate");
TORCH_PAD_LAYERS(ZeroPad, "constant");
#undef TORCH_PAD_LAYERS

/// The input with `value` around it.
template <size_t D, class Derived>
class ConstantPadImpl : public detail::PlainLayer<Derived, ConstantPadOptions<D>> {
 public:
  using detail::PlainLayer<Derived, ConstantPadOptions<D>>::PlainLayer;
  ConstantPadImpl(ExpandingArray<D * 2> padding, double value)
      : ConstantPadImpl(ConstantPadOptions<D>(padding, value)) {}
  Tensor forward(const Tensor& input) {
    return vesta::pad(input, functional::detail::list(this->options.padding()), "constant", this->options.value());
  }
  void pretty_print(std::ostream& stream) const override {
    stream << "torch::nn::ConstantPad" << D << "d(padding=" << this->options.padding()
           << ", value=" << this->options.value() << ')';
  }
};
TORCH_LAYERS_OF_DIMENSIONS(ConstantPad, ConstantPadImpl);

}  // namespace torch::nn
