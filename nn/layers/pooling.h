// Pooling over windows of [N, C, L], [N, C, H, W] and [N, C, D, H, W], or without N.
#pragma once
#include <vesta/nn/layer.h>

namespace vesta::nn {

template <size_t n>
struct MaxPoolOptions {
  Ints<n> kernel_size;
  std::optional<Ints<n>> stride = {};  // none: kernel_size
  Ints<n> padding = 0, dilation = 1;
  bool ceil_mode = false;
  VESTA_FIELDS(kernel_size, stride, padding, dilation, ceil_mode)
  static constexpr std::string_view shown =
      "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}";
};
template <size_t n>
struct AvgPoolOptions {
  Ints<n> kernel_size;
  std::optional<Ints<n>> stride = {};  // none: kernel_size
  Ints<n> padding = 0;
  bool ceil_mode = false, count_include_pad = true;
  MaybeInt divisor_override = {};
  VESTA_FIELDS(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
  static constexpr std::string_view shown = n == 1 ? "kernel_size={*kernel_size}, stride={*stride}, padding={*padding}"
                                                   : "kernel_size={kernel_size}, stride={stride}, padding={padding}";
};
template <size_t n>
struct MaxUnpoolOptions {
  Ints<n> kernel_size;
  std::optional<Ints<n>> stride = {};  // none: kernel_size
  Ints<n> padding = 0;
  VESTA_FIELDS(kernel_size, stride, padding)
  static constexpr std::string_view shown = "kernel_size={*kernel_size}, stride={*stride}, padding={*padding}";
};
template <size_t n>
struct LPPoolOptions {
  double norm_type;
  Ints<n> kernel_size;
  std::optional<Ints<n>> stride = {};  // none: kernel_size
  bool ceil_mode = false;
  VESTA_FIELDS(norm_type, kernel_size, stride, ceil_mode)
  static constexpr std::string_view shown =
      "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}";
};
template <size_t n>
struct FractionalMaxPoolOptions {
  Ints<n> kernel_size;
  std::optional<Ints<n>> output_size = {};
  std::optional<PerDimension<double>> output_ratio = {};  // in place of output_size: of the input's
  Tensor _random_samples = {};  // [N, C, n] of [0, 1): where windows begin; none: drawn
  VESTA_FIELDS(kernel_size, output_size, output_ratio, _random_samples)
  static constexpr std::string_view shown = "";
};
template <size_t n>
struct AdaptivePoolOptions {
  MaybeInts<n> output_size;  // none: the input's
  VESTA_FIELDS(output_size)
  static constexpr std::string_view shown = "output_size={output_size}";
};

namespace detail {
template <class Options>
Options with_stride(Options o) {
  if (!o.stride) o.stride = o.kernel_size;
  return o;
}
template <size_t n>
TensorPair max_pooled(const Tensor& input, const MaxPoolOptions<n>& options, bool indices);
template <size_t n>
Tensor max_unpooled(const Tensor& input, const Tensor& indices, const MaxUnpoolOptions<n>& options,
                    const std::optional<Shape>& output_size);
template <size_t n>
Tensor avg_pooled(const Tensor& input, const AvgPoolOptions<n>& options);
template <size_t n>
Tensor lp_pooled(const Tensor& input, const LPPoolOptions<n>& options);
template <size_t n>
TensorPair fractional_pooled(const Tensor& input, const FractionalMaxPoolOptions<n>& options, const Tensor& given);
template <size_t n>
TensorPair adaptive_pooled(const Tensor& input, const AdaptivePoolOptions<n>& options, bool maximum);
}  // namespace detail

/// The largest value of each window.
template <class Self, size_t n>
class VESTA_API MaxPoolNd : public LayerOf<Self, MaxPoolOptions<n>> {
 public:
  using Options = MaxPoolOptions<n>;
  VESTA_LAYER_CONSTRUCTORS(MaxPoolNd)
  Tensor forward(const Tensor& input) override { return std::get<0>(detail::max_pooled(input, this->options, false)); }
  /// Returns the largest values and their indices in the input's last n dimensions, flattened.
  TensorPair forward_with_indices(const Tensor& input) { return detail::max_pooled(input, this->options, true); }
};
template <class Self, size_t n>
MaxPoolNd<Self, n>::MaxPoolNd(Options o) : LayerOf<Self, Options>(detail::with_stride(std::move(o))) {}

/// The inverse of MaxPool: values at their indices, zeros elsewhere.
template <class Self, size_t n>
class VESTA_API MaxUnpoolNd : public LayerOf<Self, MaxUnpoolOptions<n>> {
 public:
  using Options = MaxUnpoolOptions<n>;
  VESTA_LAYER_CONSTRUCTORS(MaxUnpoolNd)
  /// Takes what forward_with_indices() of the pooling gave. Several sizes have one pooled size: `output_size` says
  /// which one it was, with or without batch and channels.
  Tensor forward(const Tensor& input, const Tensor& indices, const std::optional<Shape>& output_size = {}) {
    return detail::max_unpooled(input, indices, this->options, output_size);
  }
};
template <class Self, size_t n>
MaxUnpoolNd<Self, n>::MaxUnpoolNd(Options o) : LayerOf<Self, Options>(detail::with_stride(std::move(o))) {}

/// The mean of each window.
template <class Self, size_t n>
class VESTA_API AvgPoolNd : public LayerOf<Self, AvgPoolOptions<n>> {
 public:
  using Options = AvgPoolOptions<n>;
  VESTA_LAYER_CONSTRUCTORS(AvgPoolNd)
  Tensor forward(const Tensor& input) override { return detail::avg_pooled(input, this->options); }
};
template <class Self, size_t n>
AvgPoolNd<Self, n>::AvgPoolNd(Options o) : LayerOf<Self, Options>(detail::with_stride(std::move(o))) {}

/// (sum of x ** p) ** (1 / p) of each window.
template <class Self, size_t n>
class VESTA_API LPPoolNd : public LayerOf<Self, LPPoolOptions<n>> {
 public:
  using LayerOf<Self, LPPoolOptions<n>>::LayerOf;
  Tensor forward(const Tensor& input) override { return detail::lp_pooled(input, this->options); }
};

/// The largest value of windows whose positions are drawn for each channel (Graham 2014).
template <class Self, size_t n>
class VESTA_API FractionalMaxPoolNd : public LayerOf<Self, FractionalMaxPoolOptions<n>> {
 public:
  using Options = FractionalMaxPoolOptions<n>;
  VESTA_LAYER_CONSTRUCTORS(FractionalMaxPoolNd)
  Tensor forward(const Tensor& input) override { return std::get<0>(forward_with_indices(input)); }
  /// Returns the largest values and where they were.
  TensorPair forward_with_indices(const Tensor& input) {
    return detail::fractional_pooled(input, this->options, samples_);
  }

 private:
  Tensor samples_;  // a buffer: undefined unless it was given
};
template <class Self, size_t n>
FractionalMaxPoolNd<Self, n>::FractionalMaxPoolNd(Options o) : LayerOf<Self, Options>(std::move(o)) {
  const Tensor& given = this->options._random_samples;
  samples_ = this->register_buffer("_random_samples", given.defined() ? given.detach() : Tensor());
}

/// The mean of windows of which there are `output_size`.
template <class Self, size_t n>
class VESTA_API AdaptiveAvgPoolNd : public LayerOf<Self, AdaptivePoolOptions<n>> {
 public:
  using LayerOf<Self, AdaptivePoolOptions<n>>::LayerOf;
  Tensor forward(const Tensor& input) override {
    return std::get<0>(detail::adaptive_pooled(input, this->options, false));
  }
};
/// The largest value of windows of which there are `output_size`.
template <class Self, size_t n>
class VESTA_API AdaptiveMaxPoolNd : public LayerOf<Self, AdaptivePoolOptions<n>> {
 public:
  using LayerOf<Self, AdaptivePoolOptions<n>>::LayerOf;
  Tensor forward(const Tensor& input) override {
    return std::get<0>(detail::adaptive_pooled(input, this->options, true));
  }
  /// Returns the largest values and where they were.
  TensorPair forward_with_indices(const Tensor& input) { return detail::adaptive_pooled(input, this->options, true); }
};

VESTA_LAYERS_OF_DIMENSIONS(MaxPool, MaxPoolNd);
VESTA_LAYERS_OF_DIMENSIONS(MaxUnpool, MaxUnpoolNd);
VESTA_LAYERS_OF_DIMENSIONS(AvgPool, AvgPoolNd);
struct VESTA_API FractionalMaxPool2d : FractionalMaxPoolNd<FractionalMaxPool2d, 2> {
  using FractionalMaxPoolNd::FractionalMaxPoolNd;
};
struct VESTA_API FractionalMaxPool3d : FractionalMaxPoolNd<FractionalMaxPool3d, 3> {
  using FractionalMaxPoolNd::FractionalMaxPoolNd;
};
VESTA_LAYERS_OF_DIMENSIONS(LPPool, LPPoolNd);
VESTA_LAYERS_OF_DIMENSIONS(AdaptiveAvgPool, AdaptiveAvgPoolNd);
VESTA_LAYERS_OF_DIMENSIONS(AdaptiveMaxPool, AdaptiveMaxPoolNd);

using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

}  // namespace vesta::nn
