// Pooling as functions.
#pragma once
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/pooling.h>

#include <vesta/nn/layers/pooling.h>

namespace torch::nn::functional {

namespace detail {

template <size_t D>
vesta::nn::MaxPoolOptions<D> pool_of(const MaxPoolOptions<D>& o) {
  return {ints(o.kernel_size()), ints(o.stride()), ints(o.padding()), ints(o.dilation()), o.ceil_mode()};
}
template <size_t D>
vesta::nn::AvgPoolOptions<D> pool_of(const AvgPoolOptions<D>& o) {
  return {ints(o.kernel_size()), ints(o.stride()),      ints(o.padding()),
          o.ceil_mode(),         o.count_include_pad(), o.divisor_override()};
}
template <size_t D>
vesta::nn::MaxUnpoolOptions<D> pool_of(const MaxUnpoolFuncOptions<D>& o) {
  return {ints(o.kernel_size()), ints(o.stride()), ints(o.padding())};
}
template <size_t D>
vesta::nn::LPPoolOptions<D> pool_of(const LPPoolOptions<D>& o) {
  return {o.norm_type(), ints(o.kernel_size()), ints(o.stride()), o.ceil_mode()};
}
/// Returns the options of an adaptive pooling, maximum or mean.
template <size_t D, class Options>
vesta::nn::AdaptivePoolOptions<D> adaptive_of(const Options& o) {
  vesta::nn::AdaptivePoolOptions<D> r;
  for (size_t d = 0; d < D; ++d) r.output_size.v[d] = (*o.output_size())[d];
  return r;
}
/// Returns the options of a fractional pooling. Error: it gives both the size and the ratio, or none.
template <size_t D>
vesta::nn::FractionalMaxPoolOptions<D> pool_of(const FractionalMaxPoolOptions<D>& o) {
  TORCH_CHECK(o.output_size() || o.output_ratio(), "fractional_max_pool", D,
              "d requires specifying either an output_size or an output_ratio");
  vesta::nn::FractionalMaxPoolOptions<D> r;
  r.kernel_size = ints(o.kernel_size());
  if (o.output_size()) r.output_size = ints(*o.output_size());
  if (o.output_ratio() && !o.output_size()) {
    const auto& ratio = **o.output_ratio();
    r.output_ratio = vesta::nn::PerDimension<double>(std::vector<double>(ratio.begin(), ratio.end()));
  }
  return r;
}
/// Returns a shape, or none.
inline std::optional<vesta::nn::Shape> shape_of(const std::optional<std::vector<int64_t>>& sizes) {
  if (!sizes) return std::nullopt;
  return vesta::nn::Shape(*sizes);
}

}  // namespace detail

/// Defines the poolings of D dimensions.
#define TORCH_POOLING(D)                                                                                            \
  inline Tensor avg_pool##D##d(const Tensor& input, const AvgPool##D##dFuncOptions& o) {                            \
    return vesta::nn::detail::avg_pooled(input, detail::pool_of<D>(o));                                             \
  }                                                                                                                 \
  inline Tensor max_pool##D##d(const Tensor& input, const MaxPool##D##dFuncOptions& o) {                            \
    return std::get<0>(vesta::nn::detail::max_pooled(input, detail::pool_of<D>(o), false));                         \
  }                                                                                                                 \
  inline std::tuple<Tensor, Tensor> max_pool##D##d_with_indices(const Tensor& input,                                \
                                                                const MaxPool##D##dFuncOptions& o) {                \
    return vesta::nn::detail::max_pooled(input, detail::pool_of<D>(o), true);                                       \
  }                                                                                                                 \
  inline Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptiveAvgPool##D##dFuncOptions& o) {           \
    return std::get<0>(vesta::nn::detail::adaptive_pooled(input, detail::adaptive_of<D>(o), false));                \
  }                                                                                                                 \
  inline Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) {           \
    return std::get<0>(vesta::nn::detail::adaptive_pooled(input, detail::adaptive_of<D>(o), true));                 \
  }                                                                                                                 \
  inline std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                                           \
      const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) {                                             \
    return vesta::nn::detail::adaptive_pooled(input, detail::adaptive_of<D>(o), true);                              \
  }                                                                                                                 \
  inline Tensor max_unpool##D##d(const Tensor& input, const Tensor& indices, const MaxUnpool##D##dFuncOptions& o) { \
    return vesta::nn::detail::max_unpooled(input, indices, detail::pool_of<D>(o), detail::shape_of(o.output_size())); \
  }                                                                                                                 \
  inline Tensor lp_pool##D##d(const Tensor& input, const LPPool##D##dFuncOptions& o) {                              \
    return vesta::nn::detail::lp_pooled(input, detail::pool_of<D>(o));                                              \
  }
TORCH_POOLING(1)
TORCH_POOLING(2)
TORCH_POOLING(3)
#undef TORCH_POOLING

#define TORCH_FRACTIONAL_POOLING(D)                                                                            \
  inline std::tuple<Tensor, Tensor> fractional_max_pool##D##d_with_indices(                                    \
      const Tensor& input, const FractionalMaxPool##D##dFuncOptions& o) {                                      \
    return vesta::nn::detail::fractional_pooled(input, detail::pool_of<D>(o), o._random_samples());            \
  }                                                                                                            \
  inline Tensor fractional_max_pool##D##d(const Tensor& input, const FractionalMaxPool##D##dFuncOptions& o) {  \
    return std::get<0>(fractional_max_pool##D##d_with_indices(input, o));                                      \
  }
TORCH_FRACTIONAL_POOLING(2)
TORCH_FRACTIONAL_POOLING(3)
#undef TORCH_FRACTIONAL_POOLING

}  // namespace torch::nn::functional
