// Convolutions and their transposes over [N, C, L], [N, C, H, W] and [N, C, D, H, W], or without N.
#pragma once
#include <vesta/nn/layer.h>

namespace vesta::nn {

/// The padding of a convolution: values on each side, or "same" or "valid".
template <size_t n>
struct ConvPadding {
  Ints<n> amount;
  std::string word;
  ConvPadding() = default;
  template <std::integral I>
  ConvPadding(I all) : amount(all) {}
  ConvPadding(Ints<n> each) : amount(each) {}
  ConvPadding(const char* name) : word(name) {}
  ConvPadding(std::string name) : word(std::move(name)) {}
  template <std::convertible_to<int64_t>... I>
    requires(sizeof...(I) == n && n > 1)
  ConvPadding(I... each) : amount(each...) {}
  bool operator==(const ConvPadding&) const = default;
};
template <size_t n>
detail::Shown shown(const ConvPadding<n>& p) {
  return p.word.empty() ? shown(p.amount) : detail::Shown(p.word);
}

template <size_t n>
struct ConvOptions {
  static constexpr size_t required = 3;
  int64_t in_channels, out_channels;
  Ints<n> kernel_size;
  Ints<n> stride = 1;
  ConvPadding<n> padding = 0;
  Ints<n> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";  // "reflect", "replicate" or "circular"
  DType dtype = DType::float32;
  VESTA_FIELDS(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode)
  static constexpr std::string_view shown =
      "{in_channels}, {out_channels}, kernel_size={*kernel_size}, stride={*stride}[, padding={*padding}]"
      "[, dilation={*dilation}][, groups={groups}][, bias={bias}][, padding_mode={padding_mode}]";
};

template <size_t n>
struct ConvTransposeOptions {
  static constexpr size_t required = 3;
  int64_t in_channels, out_channels;
  Ints<n> kernel_size;
  Ints<n> stride = 1, padding = 0, output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Ints<n> dilation = 1;
  DType dtype = DType::float32;
  VESTA_FIELDS(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation)
  static constexpr std::string_view shown =
      "{in_channels}, {out_channels}, kernel_size={*kernel_size}, stride={*stride}[, padding={*padding}]"
      "[, dilation={*dilation}][, output_padding={*output_padding}][, groups={groups}][, bias={bias}]";
};

namespace detail {
/// Checks the options of a convolution named `op` and makes its weight and bias; draws them as reset_convolution does.
template <class Options>
std::pair<Tensor, Tensor> make_convolution(Module& module, const std::string& op, const Options& options);
/// Draws weight and bias from U(-b, b), b = 1 / sqrt(values that a sum of the weight takes).
VESTA_API void reset_convolution(const Tensor& weight, const Tensor& bias);
template <size_t n>
Tensor convolved(const Tensor& input, const Tensor& weight, const Tensor& bias, const ConvOptions<n>& options);
template <size_t n>
Tensor convolved(const Tensor& input, const Tensor& weight, const Tensor& bias, const ConvTransposeOptions<n>& options,
                 const std::optional<std::vector<int64_t>>& output_size);
/// Returns whether one op computes a convolution and the relu behind it: on CUDA, with a bias, where no gradient is
/// recorded and nothing sees what lies between (hooks, a class that derives from either, anomaly mode).
VESTA_API bool joins_relu(const Module& layer, const Tensor& weight, const Tensor& bias, const ConvOptions<2>& options,
                          const Module& activation, const Tensor& input);
VESTA_API Tensor convolved_with_relu(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                     const ConvOptions<2>& options);
}  // namespace detail

/// The cross-correlation with `weight` [out_channels, in_channels / groups, *kernel_size], plus `bias` [out_channels].
template <class Self, size_t n>
class VESTA_API ConvNd : public LayerOf<Self, ConvOptions<n>> {
 public:
  using Options = ConvOptions<n>;
  VESTA_LAYER_CONSTRUCTORS(ConvNd)
  Tensor forward(const Tensor& input) override { return detail::convolved(input, weight, bias, this->options); }
  /// Runs this layer and the activation behind it as one op; empty where that is no gain or would be seen.
  std::optional<Tensor> forward_with(const Module& activation, const Tensor& input)
    requires(n == 2)
  {
    if (!detail::joins_relu(*this, weight, bias, this->options, activation, input)) return {};
    return this->in_context([&] { return detail::convolved_with_relu(input, weight, bias, this->options); });
  }
  void reset_parameters() { detail::reset_convolution(weight, bias); }
  Tensor weight, bias;
};
template <class Self, size_t n>
ConvNd<Self, n>::ConvNd(Options o) : LayerOf<Self, Options>(std::move(o)) {
  std::tie(weight, bias) = detail::make_convolution(*this, Self::name(), this->options);
}

/// The gradient of a convolution with respect to its input, as a layer: `weight` [in_channels, out_channels / groups,
/// *kernel_size]. `output_size` chooses among the sizes that give the same input.
template <class Self, size_t n>
class VESTA_API ConvTransposeNd : public LayerOf<Self, ConvTransposeOptions<n>> {
 public:
  using Options = ConvTransposeOptions<n>;
  VESTA_LAYER_CONSTRUCTORS(ConvTransposeNd)
  Tensor forward(const Tensor& input, const std::optional<std::vector<int64_t>>& output_size = {}) {
    return detail::convolved(input, weight, bias, this->options, output_size);
  }
  void reset_parameters() { detail::reset_convolution(weight, bias); }
  Tensor weight, bias;
};
template <class Self, size_t n>
ConvTransposeNd<Self, n>::ConvTransposeNd(Options o) : LayerOf<Self, Options>(std::move(o)) {
  std::tie(weight, bias) = detail::make_convolution(*this, Self::name(), this->options);
}

using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

VESTA_LAYERS_OF_DIMENSIONS(Conv, ConvNd);
VESTA_LAYERS_OF_DIMENSIONS(ConvTranspose, ConvTransposeNd);

}  // namespace vesta::nn
