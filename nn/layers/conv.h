// Convolution, pooling and batch normalisation over images [N, C, H, W].
#pragma once
#include <array>

#include <vesta/nn/module.h>

namespace vesta::nn {

/// One number for both dimensions, or one for each.
struct Pair {
  std::array<int64_t, 2> v{};
  Pair(int64_t both) : v{both, both} {}
  Pair(int64_t height, int64_t width) : v{height, width} {}
  operator IntList() const { return IntSpan(v); }
};

struct Conv2dOptions {
  int64_t in_channels, out_channels;
  Pair kernel_size;
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  DType dtype = DType::float32;
};
/// The cross-correlation of [N, in_channels, H, W] (or without N) with weight [out_channels, in_channels / groups, kh,
/// kw].
class VESTA_API Conv2d : public Module {
 public:
  explicit Conv2d(Conv2dOptions options);
  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size)
      : Conv2d(Conv2dOptions{in_channels, out_channels, kernel_size}) {}
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "Conv2d"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override;
  /// Draws weight and bias from U(-b, b), b = 1 / sqrt(fan_in).
  void reset_parameters();
  const Conv2dOptions options;
  Tensor weight, bias;
};

struct MaxPool2dOptions {
  Pair kernel_size;
  std::optional<Pair> stride = {};  // kernel_size
  Pair padding = 0, dilation = 1;
  bool ceil_mode = false;
};
/// The largest value of each window.
class VESTA_API MaxPool2d : public Module {
 public:
  explicit MaxPool2d(MaxPool2dOptions o) : options(o) {}
  explicit MaxPool2d(Pair kernel_size) : MaxPool2d(MaxPool2dOptions{kernel_size}) {}
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "MaxPool2d"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override { return copy_of(*this, options); }
  const MaxPool2dOptions options;
};

struct BatchNorm2dOptions {
  int64_t num_features;
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: cumulative average
  bool affine = true, track_running_stats = true;
  bool bias = true;  // with affine: whether a bias is learnt beside the weight
  DType dtype = DType::float32;
};
/// The normalisation of each channel by the statistics of the batch (training) or the running ones (Ioffe and Szegedy
/// 2015).
class VESTA_API BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(BatchNorm2dOptions options);
  explicit BatchNorm2d(int64_t num_features) : BatchNorm2d(BatchNorm2dOptions{num_features}) {}
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "BatchNorm2d"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override;
  const BatchNorm2dOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

}  // namespace vesta::nn
