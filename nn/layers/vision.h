// Resizing of grids, and channels turned into pixels and back.
#pragma once
#include <vesta/core/ops/resample.h>
#include <vesta/nn/layer.h>

namespace vesta::nn {

struct PixelShuffleOptions {
  int64_t upscale_factor;
  VESTA_FIELDS(upscale_factor)
};
/// The module from [*, C * r ** 2, H, W] to [*, C, H * r, W * r] (Shi et al. 2016).
struct VESTA_API PixelShuffle : LayerOf<PixelShuffle, PixelShuffleOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return pixel_shuffle(input, options.upscale_factor); }
};

struct PixelUnshuffleOptions {
  int64_t downscale_factor;
  VESTA_FIELDS(downscale_factor)
};
/// The inverse of PixelShuffle.
struct VESTA_API PixelUnshuffle : LayerOf<PixelUnshuffle, PixelUnshuffleOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return pixel_unshuffle(input, options.downscale_factor); }
};

struct ChannelShuffleOptions {
  int64_t groups;
  VESTA_FIELDS(groups)
};
/// The channels of all groups by turns (Zhang et al. 2018).
struct VESTA_API ChannelShuffle : LayerOf<ChannelShuffle, ChannelShuffleOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return channel_shuffle(input, options.groups); }
};

struct UpsampleOptions {
  std::optional<PerDimension<int64_t>> size = {};
  std::optional<PerDimension<double>> scale_factor = {};  // in place of size
  std::string mode = "nearest";  // "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area"
  std::optional<bool> align_corners = {};
  std::optional<bool> recompute_scale_factor = {};
  VESTA_FIELDS(size, scale_factor, mode, align_corners, recompute_scale_factor)
};
/// A grid [N, C, L], [N, C, H, W] or [N, C, D, H, W], resized.
struct VESTA_API Upsample : LayerOf<Upsample, UpsampleOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};

struct Upsampling2dOptions {
  std::optional<PerDimension<int64_t>> size = {};
  std::optional<PerDimension<double>> scale_factor = {};
  VESTA_FIELDS(size, scale_factor)
};
/// An image [N, C, H, W] resized by taking the nearest pixel.
struct VESTA_API UpsamplingNearest2d : LayerOf<UpsamplingNearest2d, Upsampling2dOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};
/// An image [N, C, H, W] resized linearly in both directions, with corners aligned.
struct VESTA_API UpsamplingBilinear2d : LayerOf<UpsamplingBilinear2d, Upsampling2dOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;
};

struct UnfoldOptions {
  Pair kernel_size;
  Pair dilation = 1, padding = 0, stride = 1;
  VESTA_FIELDS(kernel_size, dilation, padding, stride)
  static constexpr std::string_view shown =
      "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}";
};
/// The windows of images [N, C, H, W] as columns [N, C * kernel area, windows].
struct VESTA_API Unfold : LayerOf<Unfold, UnfoldOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

struct FoldOptions {
  static constexpr size_t required = 2;
  Pair output_size, kernel_size;
  Pair dilation = 1, padding = 0, stride = 1;
  VESTA_FIELDS(output_size, kernel_size, dilation, padding, stride)
  static constexpr std::string_view shown =
      "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
      "stride={stride}";
};
/// The sums of columns [N, C * kernel area, windows] at the positions of their windows: images [N, C, H, W].
struct VESTA_API Fold : LayerOf<Fold, FoldOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

}  // namespace vesta::nn
