// Normalisation by the statistics of the batch, of each channel, of groups of channels or of the last dimensions.
#pragma once
#include <vesta/core/ops/norm.h>
#include <vesta/nn/layer.h>

namespace vesta::nn {

struct BatchNormOptions {
  int64_t num_features;
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: cumulative average
  bool affine = true, track_running_stats = true;
  bool bias = true;  // with affine: whether a bias is learnt beside the weight
  DType dtype = DType::float32;
  VESTA_FIELDS(num_features, eps, momentum, affine, track_running_stats, bias)
  static constexpr std::string_view shown =
      "{num_features}, eps={eps}, momentum={momentum}, affine={affine}, bias={bias}, "
      "track_running_stats={track_running_stats}";
};
struct InstanceNormOptions {
  int64_t num_features;
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = false, track_running_stats = false;
  bool bias = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(num_features, eps, momentum, affine, track_running_stats, bias)
  static constexpr std::string_view shown = BatchNormOptions::shown;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;

namespace detail {
/// The parameters and running statistics of a normalisation per channel; undefined where there are none.
struct ChannelStatistics {
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};
template <class Options>
Options with_affine_bias(Options o) {
  o.bias = o.bias && o.affine;
  return o;
}
template <class Options>
ChannelStatistics make_channel_statistics(Module& module, const Options& options);
/// Normalises [N, C, ...], or [N, C] too for n = 1, by the batch's statistics (training) or the running ones.
VESTA_API Tensor batch_normalized(const std::string& op, size_t n, const Tensor& input, const ChannelStatistics& s,
                                  const BatchNormOptions& options, bool training);
VESTA_API Tensor instance_normalized(const std::string& op, size_t n, const Tensor& input, const ChannelStatistics& s,
                                     const InstanceNormOptions& options, bool training);
}  // namespace detail

/// The normalisation of each channel by the statistics of the batch (training) or the running ones (Ioffe and Szegedy
/// 2015).
template <class Self, size_t n>
class VESTA_API BatchNormNd : public LayerOf<Self, BatchNormOptions>, public detail::ChannelStatistics {
 public:
  using Options = BatchNormOptions;
  VESTA_LAYER_CONSTRUCTORS(BatchNormNd)
  Tensor forward(const Tensor& input) override {
    return detail::batch_normalized(Self::name(), n, input, *this, this->options, this->is_training());
  }
};
template <class Self, size_t n>
BatchNormNd<Self, n>::BatchNormNd(Options o)
    : LayerOf<Self, Options>(detail::with_affine_bias(o)),
      detail::ChannelStatistics(detail::make_channel_statistics(*this, this->options)) {}

/// The normalisation of each channel of each example (Ulyanov et al. 2016).
template <class Self, size_t n>
class VESTA_API InstanceNormNd : public LayerOf<Self, InstanceNormOptions>, public detail::ChannelStatistics {
 public:
  using Options = InstanceNormOptions;
  VESTA_LAYER_CONSTRUCTORS(InstanceNormNd)
  Tensor forward(const Tensor& input) override {
    return detail::instance_normalized(Self::name(), n, input, *this, this->options, this->is_training());
  }
};
template <class Self, size_t n>
InstanceNormNd<Self, n>::InstanceNormNd(Options o)
    : LayerOf<Self, Options>(detail::with_affine_bias(o)),
      detail::ChannelStatistics(detail::make_channel_statistics(*this, this->options)) {}

VESTA_LAYERS_OF_DIMENSIONS(BatchNorm, BatchNormNd);
VESTA_LAYERS_OF_DIMENSIONS(InstanceNorm, InstanceNormNd);

struct LayerNormOptions {
  Shape normalized_shape;
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;  // with elementwise_affine: whether a bias is learnt beside the weight
  DType dtype = DType::float32;
  VESTA_FIELDS(normalized_shape, eps, elementwise_affine, bias)
  static constexpr std::string_view shown =
      "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}, bias={bias}";
};
/// The module that brings the last dimensions [*, normalized_shape] to mean 0 and variance 1, times weight, plus bias
/// (Ba et al. 2016).
class VESTA_API LayerNorm : public LayerOf<LayerNorm, LayerNormOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(LayerNorm)
  explicit LayerNorm(std::initializer_list<int64_t> normalized_shape)
      : LayerNorm(Options{.normalized_shape = normalized_shape}) {}
  Tensor forward(const Tensor& input) override {
    return layer_norm(input, options.normalized_shape, weight, bias, options.eps);
  }
  Tensor weight, bias;  // of normalized_shape, or undefined
};

struct RMSNormOptions {
  Shape normalized_shape;
  std::optional<double> eps = {};  // none: float32's spacing of numbers at 1, for float64 its own
  bool elementwise_affine = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(normalized_shape, eps, elementwise_affine)
  static constexpr std::string_view shown = "{normalized_shape}, eps={eps}, elementwise_affine={elementwise_affine}";
};
/// x / sqrt(mean(x ** 2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019).
class VESTA_API RMSNorm : public LayerOf<RMSNorm, RMSNormOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(RMSNorm)
  explicit RMSNorm(std::initializer_list<int64_t> normalized_shape)
      : RMSNorm(Options{.normalized_shape = normalized_shape}) {}
  Tensor forward(const Tensor& input) override {
    return rms_norm(input, options.normalized_shape, weight, options.eps);
  }
  Tensor weight;  // of normalized_shape, or undefined
};

struct GroupNormOptions {
  static constexpr size_t required = 2;
  int64_t num_groups, num_channels;
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;  // with affine: whether a bias is learnt beside the weight
  DType dtype = DType::float32;
  VESTA_FIELDS(num_groups, num_channels, eps, affine, bias)
  static constexpr std::string_view shown = "{num_groups}, {num_channels}, eps={eps}, affine={affine}, bias={bias}";
};
/// The normalisation of groups of channels of each example [N, C, ...] (Wu and He 2018).
class VESTA_API GroupNorm : public LayerOf<GroupNorm, GroupNormOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(GroupNorm)
  Tensor forward(const Tensor& input) override;
  Tensor weight, bias;  // [num_channels], or undefined
};

struct LocalResponseNormOptions {
  int64_t size;
  double alpha = 1e-4, beta = 0.75, k = 1;
  VESTA_FIELDS(size, alpha, beta, k)
  static constexpr std::string_view shown = "{size}, alpha={alpha}, beta={beta}, k={k}";
};
/// x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta of [N, C, ...] (Krizhevsky et al. 2012).
struct VESTA_API LocalResponseNorm : LayerOf<LocalResponseNorm, LocalResponseNormOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

struct CrossMapLRN2dOptions {
  int64_t size;
  double alpha = 1e-4, beta = 0.75, k = 1;
  VESTA_FIELDS(size, alpha, beta, k)
  static constexpr std::string_view shown = "{size}, alpha={alpha}, beta={beta}, k={k}";
};
/// LocalResponseNorm for images, as in Torch 7: the window of channel c is [c - (size - 1) / 2, c + (size - 1) / 2].
struct VESTA_API CrossMapLRN2d : LayerOf<CrossMapLRN2d, CrossMapLRN2dOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

}  // namespace vesta::nn
