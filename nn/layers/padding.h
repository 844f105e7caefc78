// Values around [N, C, L], [N, C, H, W] and [N, C, D, H, W]: constants, zeros, or those of the input.
#pragma once
#include <vesta/core/ops/resample.h>
#include <vesta/nn/layer.h>

namespace vesta::nn {

/// The padding of the sides of n dimensions: one number for all, or one for each side, the last dimension first.
template <size_t n>
struct PadOptions {
  Ints<2 * n> padding;
  VESTA_FIELDS(padding)
  static constexpr std::string_view shown = "{*padding}";
};
template <size_t n>
struct ConstantPadOptions {
  Ints<2 * n> padding;
  double value;
  VESTA_FIELDS(padding, value)
  static constexpr std::string_view shown = "padding={*padding}, value={value}";
};

/// Defines the base of a padding layer, NAMENd, over a mode of pad(), and the layers for 1 to 3 dimensions.
#define VESTA_PADDING(Name, mode)                                              \
  template <class Self, size_t n>                                              \
  class VESTA_API Name##Nd : public LayerOf<Self, PadOptions<n>> {               \
   public:                                                                     \
    using LayerOf<Self, PadOptions<n>>::LayerOf;                                 \
    Tensor forward(const Tensor& input) override {                             \
      return pad(input, this->options.padding, mode);                          \
    }                                                                          \
  };                                                                           \
  VESTA_LAYERS_OF_DIMENSIONS(Name, Name##Nd)
VESTA_PADDING(ZeroPad, "constant");
VESTA_PADDING(ReflectionPad, "reflect");
VESTA_PADDING(ReplicationPad, "replicate");
VESTA_PADDING(CircularPad, "circular");
#undef VESTA_PADDING

/// The input with `value` around it.
template <class Self, size_t n>
class VESTA_API ConstantPadNd : public LayerOf<Self, ConstantPadOptions<n>> {
 public:
  using LayerOf<Self, ConstantPadOptions<n>>::LayerOf;
  Tensor forward(const Tensor& input) override {
    return pad(input, this->options.padding, "constant", this->options.value);
  }
};
VESTA_LAYERS_OF_DIMENSIONS(ConstantPad, ConstantPadNd);

}  // namespace vesta::nn
