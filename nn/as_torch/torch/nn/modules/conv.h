// Convolutions and their transposes as layers.
#pragma once
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <torch/nn/functional/conv.h>
#include <torch/nn/modules/common.h>

#include <vesta/nn/layers/conv.h>

namespace torch::nn {

/// What convolutions and their transposes share: `weight` and `bias`.
template <size_t D, class Derived>
class ConvNdImpl : public Cloneable<Derived> {
 public:
  explicit ConvNdImpl(detail::ConvNdOptions<D> given) : options(std::move(given)) { ConvNdImpl::reset(); }
  void reset() override {
    const int64_t in = options.in_channels(), out = options.out_channels(), groups = options.groups();
    TORCH_CHECK(in > 0 && groups > 0 && out > 0, "in_channels, groups and out_channels must be a positive integer.");
    TORCH_CHECK(in % groups == 0, "in_channels must be divisible by groups");
    TORCH_CHECK(out % groups == 0, "out_channels must be divisible by groups");
    if (std::holds_alternative<enumtype::kSame>(options.padding())) {
      for (int64_t step : *options.stride()) {
        TORCH_CHECK(step == 1, "padding='same' is not supported for strided convolutions");
      }
    }
    std::vector<int64_t> sizes{options.transposed() ? in : out, (options.transposed() ? out : in) / groups};
    sizes.insert(sizes.end(), options.kernel_size()->begin(), options.kernel_size()->end());
    weight = this->register_parameter("weight", vesta::empty(sizes));
    bias = this->register_parameter("bias", options.bias() ? vesta::empty({out}) : Tensor(), options.bias());
    reset_parameters();
  }
  void reset_parameters() { vesta::nn::detail::reset_convolution(weight, bias); }

  detail::ConvNdOptions<D> options;
  Tensor weight, bias;

 protected:
  static bool differs(const ExpandingArray<D>& sizes, int64_t usual) {
    for (int64_t size : *sizes) {
      if (size != usual) return true;
    }
    return false;
  }
  /// Prints what is not usual among the options that both kinds have.
  void print(std::ostream& stream, const char* name) const {
    const auto& o = options;
    stream << "torch::nn::" << name << D << "d(" << o.in_channels() << ", " << o.out_channels()
           << ", kernel_size=" << o.kernel_size() << ", stride=" << o.stride();
    if (const auto* sides = std::get_if<ExpandingArray<D>>(&o.padding())) {
      if (differs(*sides, 0)) stream << ", padding=" << *sides;
    } else {
      stream << (std::holds_alternative<enumtype::kSame>(o.padding()) ? ", padding='same'" : ", padding='valid'");
    }
    if (differs(o.dilation(), 1)) stream << ", dilation=" << o.dilation();
    if (differs(o.output_padding(), 0)) stream << ", output_padding=" << o.output_padding();
    if (o.groups() != 1) stream << ", groups=" << o.groups();
    if (!o.bias()) stream << ", bias=false";
    if (!std::holds_alternative<enumtype::kZeros>(o.padding_mode())) {
      stream << ", padding_mode=" << enumtype::get_enum_name(o.padding_mode());
    }
    stream << ')';
  }
};

/// The cross-correlation with `weight` [out, in / groups, *kernel_size], plus `bias` [out].
template <size_t D, class Derived>
class ConvImplBase : public ConvNdImpl<D, Derived> {
 public:
  using ConvNdImpl<D, Derived>::ConvNdImpl;
  ConvImplBase(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvImplBase(ConvOptions<D>(in_channels, out_channels, std::move(kernel_size))) {}
  explicit ConvImplBase(const ConvOptions<D>& o)
      : ConvNdImpl<D, Derived>(detail::ConvNdOptions<D>(o.in_channels(), o.out_channels(), o.kernel_size())
                                   .stride(o.stride())
                                   .padding(o.padding())
                                   .dilation(o.dilation())
                                   .groups(o.groups())
                                   .bias(o.bias())
                                   .padding_mode(o.padding_mode())) {}
  Tensor forward(const Tensor& input) {
    const auto& o = this->options;
    vesta::nn::ConvOptions<D> v{.in_channels = o.in_channels(),
                                .out_channels = o.out_channels(),
                                .kernel_size = functional::detail::ints(o.kernel_size()),
                                .stride = functional::detail::ints(o.stride()),
                                .dilation = functional::detail::ints(o.dilation()),
                                .groups = o.groups(),
                                .padding_mode = functional::detail::word(o.padding_mode())};
    if (const auto* sides = std::get_if<ExpandingArray<D>>(&o.padding())) {
      v.padding.amount = functional::detail::ints(*sides);
    } else {
      v.padding.word = std::holds_alternative<enumtype::kSame>(o.padding()) ? "same" : "valid";
    }
    return vesta::nn::detail::convolved(input, this->weight, this->bias, v);
  }
  void pretty_print(std::ostream& stream) const override { this->print(stream, "Conv"); }
};
TORCH_LAYERS_OF_DIMENSIONS(Conv, ConvImplBase);

/// The gradient of a convolution with respect to its input, as a layer: `weight` [in, out / groups, *kernel_size].
template <size_t D, class Derived>
class ConvTransposeNdImpl : public ConvNdImpl<D, Derived> {
 public:
  using ConvNdImpl<D, Derived>::ConvNdImpl;
  ConvTransposeNdImpl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : ConvTransposeNdImpl(ConvTransposeOptions<D>(in_channels, out_channels, std::move(kernel_size))) {}
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& o)
      : ConvNdImpl<D, Derived>(detail::ConvNdOptions<D>(o.in_channels(), o.out_channels(), o.kernel_size())
                                   .stride(o.stride())
                                   .padding(o.padding())
                                   .dilation(o.dilation())
                                   .transposed(true)
                                   .output_padding(o.output_padding())
                                   .groups(o.groups())
                                   .bias(o.bias())
                                   .padding_mode(o.padding_mode())) {}
  /// `output_size` chooses among the sizes that give the same input.
  Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt) {
    const auto& o = this->options;
    TORCH_CHECK(std::holds_alternative<enumtype::kZeros>(o.padding_mode()),
                "Only `zeros` padding mode is supported for ConvTranspose", D, "d");
    const vesta::nn::ConvTransposeOptions<D> v{
        .in_channels = o.in_channels(),
        .out_channels = o.out_channels(),
        .kernel_size = functional::detail::ints(o.kernel_size()),
        .stride = functional::detail::ints(o.stride()),
        .padding = functional::detail::ints(std::get<ExpandingArray<D>>(o.padding())),
        .output_padding = functional::detail::ints(o.output_padding()),
        .groups = o.groups(),
        .dilation = functional::detail::ints(o.dilation())};
    std::optional<std::vector<int64_t>> wanted;
    if (output_size) wanted.emplace(output_size->begin(), output_size->end());
    return vesta::nn::detail::convolved(input, this->weight, this->bias, v, wanted);
  }
  void pretty_print(std::ostream& stream) const override { this->print(stream, "ConvTranspose"); }
};
TORCH_LAYERS_OF_DIMENSIONS(ConvTranspose, ConvTransposeNdImpl);

}  // namespace torch::nn
