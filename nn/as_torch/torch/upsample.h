// Functions that resize images, as libtorch's operators are called: a size, or factors.
#pragma once
#include <torch/nn/functional/upsampling.h>

namespace torch {

namespace detail {
template <class Mode>
Tensor upsampled(const Tensor& t, Mode mode, const optional<IntArrayRef>& size,
                 const optional<ArrayRef<double>>& factors, optional<bool> align_corners) {
  nn::functional::InterpolateFuncOptions o;
  o.mode(mode);
  if (size) o.size(size->vec());
  else if (factors) o.scale_factor(factors->vec());
  if (align_corners) o.align_corners(*align_corners);
  return nn::functional::interpolate(t, o);
}
}  // namespace detail

// A size and, where they are given, the factors that say where samples lie: those that the size implies are the same.
#define VESTA_UPSAMPLE(name, mode)                                                                                   \
  template <class... Factors>                                                                                        \
  Tensor name(const Tensor& t, IntArrayRef size, const Factors&...) {                                                \
    return detail::upsampled(t, mode, size, {}, {});                                                                 \
  }                                                                                                                  \
  inline Tensor name(const Tensor& t, const optional<IntArrayRef>& size, const optional<ArrayRef<double>>& factors) { \
    return detail::upsampled(t, mode, size, factors, {});                                                            \
  }
#define VESTA_UPSAMPLE_ALIGNED(name, mode)                                                                           \
  template <class... Factors>                                                                                        \
  Tensor name(const Tensor& t, IntArrayRef size, bool align_corners, const Factors&...) {                            \
    return detail::upsampled(t, mode, size, {}, align_corners);                                                      \
  }                                                                                                                  \
  inline Tensor name(const Tensor& t, const optional<IntArrayRef>& size, bool align_corners,                         \
                     const optional<ArrayRef<double>>& factors) {                                                    \
    return detail::upsampled(t, mode, size, factors, align_corners);                                                 \
  }
VESTA_UPSAMPLE(upsample_nearest1d, kNearest)
VESTA_UPSAMPLE(upsample_nearest2d, kNearest)
VESTA_UPSAMPLE(upsample_nearest3d, kNearest)
VESTA_UPSAMPLE_ALIGNED(upsample_linear1d, kLinear)
VESTA_UPSAMPLE_ALIGNED(upsample_bilinear2d, kBilinear)
VESTA_UPSAMPLE_ALIGNED(upsample_bicubic2d, kBicubic)
VESTA_UPSAMPLE_ALIGNED(upsample_trilinear3d, kTrilinear)
#undef VESTA_UPSAMPLE
#undef VESTA_UPSAMPLE_ALIGNED

}  // namespace torch
