// Functions of layers as libtorch's operators are called: images are resized by a size or factors, bags of rows reduced
// by a number, values dropped with a flag.
#pragma once
#include <torch/nn/functional/dropout.h>
#include <torch/nn/functional/embedding.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/functional/upsampling.h>

namespace torch {

namespace detail {
template <class Mode>
Tensor upsampled(const Tensor& t, Mode mode, const OptionalIntArrayRef& size, const optional<ArrayRef<double>>& factors,
                 optional<bool> align_corners) {
  nn::functional::InterpolateFuncOptions o;
  o.mode(mode);
  if (size) o.size(IntArrayRef(*size).vec());
  else if (factors) o.scale_factor(factors->vec());
  if (align_corners) o.align_corners(*align_corners);
  return nn::functional::interpolate(t, o);
}
}  // namespace detail

// A size and, where they are given, the factors that say where samples lie: those that the size implies are the same.
#define VESTA_UPSAMPLE(name, mode)                                                                                   \
  template <class... Factors>                                                                                        \
  Tensor name(const Tensor& t, IntArrayRef size, const Factors&...) {                                                \
    return detail::upsampled(t, mode, vesta::MaybeDims(size), {}, {});                                               \
  }                                                                                                                  \
  inline Tensor name(const Tensor& t, const OptionalIntArrayRef& size, const optional<ArrayRef<double>>& by) {       \
    return detail::upsampled(t, mode, size, by, {});                                                                 \
  }
#define VESTA_UPSAMPLE_ALIGNED(name, mode)                                                                           \
  template <class... Factors>                                                                                        \
  Tensor name(const Tensor& t, IntArrayRef size, bool align_corners, const Factors&...) {                            \
    return detail::upsampled(t, mode, vesta::MaybeDims(size), {}, align_corners);                                    \
  }                                                                                                                  \
  inline Tensor name(const Tensor& t, const OptionalIntArrayRef& size, bool align_corners,                           \
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

inline Tensor max_unpool2d(const Tensor& t, const Tensor& indices, IntArrayRef output_size) {
  return nn::functional::max_unpool2d(t, indices,
                                      nn::functional::MaxUnpool2dFuncOptions({2, 2}).output_size(output_size.vec()));
}
inline Tensor alpha_dropout(const Tensor& t, double p, bool train) {
  return nn::functional::alpha_dropout(t, nn::functional::AlphaDropoutFuncOptions().p(p).training(train));
}
inline Tensor feature_alpha_dropout(const Tensor& t, double p, bool train) {
  return nn::functional::feature_alpha_dropout(t,
                                               nn::functional::FeatureAlphaDropoutFuncOptions().p(p).training(train));
}
/// Drops whole channels: t is [N, C, ...].
inline Tensor feature_dropout(const Tensor& t, double p, bool train) {
  TORCH_CHECK(t.defined() && t.dim() >= 2, "feature_dropout: expected a tensor of 2 or more dimensions");
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (!train || p == 0) return t;
  std::vector<int64_t> sizes(size_t(t.dim()), 1);
  sizes[0] = t.size(0), sizes[1] = t.size(1);
  if (p == 1) return t * 0;
  return t * torch::empty(sizes, t.options()).bernoulli_(1 - p).div_(1 - p);
}
/// Sums (mode 0), means (1) or maxima (2) of bags of rows of `weight`, and the sizes of bags. The second and the last
/// result, which serve libtorch's own backward, are empty.
inline std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                                const Tensor& offsets, bool scale_grad_by_freq = false,
                                                                int64_t mode = 0, bool sparse = false,
                                                                const optional<Tensor>& per_sample_weights = {},
                                                                bool include_last_offset = false,
                                                                optional<int64_t> padding_idx = {}) {
  TORCH_CHECK(mode >= 0 && mode <= 2, "embedding_bag: expected the mode 0 (sum), 1 (mean) or 2 (max), got ", mode);
  TORCH_CHECK(offsets.defined() && offsets.dim() == 1, "embedding_bag: expected a 1-D tensor of offsets");
  nn::functional::EmbeddingBagFuncOptions o;
  if (mode == 0) o.mode(kSum);
  else if (mode == 1) o.mode(kMean);
  else o.mode(kMax);
  o.offsets(offsets).scale_grad_by_freq(scale_grad_by_freq).sparse(sparse).include_last_offset(include_last_offset);
  o.per_sample_weights(per_sample_weights.value_or(Tensor())).padding_idx(padding_idx);
  const Tensor result = nn::functional::embedding_bag(indices, weight, o);
  const Tensor ends = torch::full({1}, indices.numel(), offsets.options());
  const Tensor bounds = include_last_offset ? offsets : vesta::cat({offsets, ends});
  const Tensor none = torch::empty({0}, offsets.options());
  return {result, none, bounds.diff(), none};
}

}  // namespace torch
