#include <vesta/nn/layers/pooling.h>

#include <cmath>

namespace vesta::nn::detail {
namespace {

/// Fills sizes that are not given with the input's.
template <size_t n>
Dims filled(const Tensor& input, const MaybeInts<n>& sizes) {
  VESTA_CHECK(input.dim() > int64_t(n), value, "adaptive_pool", n, "d: expected an input of more than ", n,
              " dimensions, got ", input.dim(), ".");
  Dims r;
  for (size_t d = 0; d < n; ++d) r.push_back(sizes.v[d].value_or(input.size(int64_t(d) - int64_t(n))));
  return r;
}

}  // namespace

template <size_t n>
TensorPair max_pooled(const Tensor& x, const MaxPoolOptions<n>& o, bool indices) {
  const Ints<n>& stride = *o.stride;
  if constexpr (n == 1) {
    if (indices) return max_pool1d_with_indices(x, o.kernel_size, stride, o.padding, o.dilation, o.ceil_mode);
    return {max_pool1d(x, o.kernel_size, stride, o.padding, o.dilation, o.ceil_mode), Tensor()};
  } else if constexpr (n == 2) {
    if (indices) return max_pool2d_with_indices(x, o.kernel_size, stride, o.padding, o.dilation, o.ceil_mode);
    return {max_pool2d(x, o.kernel_size, stride, o.padding, o.dilation, o.ceil_mode), Tensor()};
  } else {
    if (indices) return max_pool3d_with_indices(x, o.kernel_size, stride, o.padding, o.dilation, o.ceil_mode);
    return {max_pool3d(x, o.kernel_size, stride, o.padding, o.dilation, o.ceil_mode), Tensor()};
  }
}

template <size_t n>
Tensor avg_pooled(const Tensor& x, const AvgPoolOptions<n>& o) {
  const Ints<n>& stride = *o.stride;
  if constexpr (n == 1) {
    VESTA_CHECK(!o.divisor_override, value, "AvgPool1d: expected no divisor_override, got ", *o.divisor_override, ".");
    return avg_pool1d(x, o.kernel_size, stride, o.padding, o.ceil_mode, o.count_include_pad);
  } else if constexpr (n == 2) {
    return avg_pool2d(x, o.kernel_size, stride, o.padding, o.ceil_mode, o.count_include_pad, o.divisor_override);
  } else {
    return avg_pool3d(x, o.kernel_size, stride, o.padding, o.ceil_mode, o.count_include_pad, o.divisor_override);
  }
}

template <size_t n>
Tensor lp_pooled(const Tensor& x, const LPPoolOptions<n>& o) {
  VESTA_CHECK(o.norm_type != 0, value, "lp_pool", n, "d: expected a number other than 0, got 0 (norm_type).");
  int64_t count = 1;
  for (int64_t k : o.kernel_size.v) count *= k;
  const Tensor powers = pow(x, o.norm_type);
  const Tensor mean = avg_pooled(
      powers, AvgPoolOptions<n>{
                  .kernel_size = o.kernel_size, .stride = o.stride.value_or(o.kernel_size), .ceil_mode = o.ceil_mode});
  return pow(mul(mul(sign(mean), relu(abs(mean))), count), 1.0 / o.norm_type);
}

template <size_t n>
TensorPair adaptive_pooled(const Tensor& x, const AdaptivePoolOptions<n>& o, bool maximum) {
  const Dims sizes = filled(x, o.output_size);
  if constexpr (n == 1) {
    if (maximum) return adaptive_max_pool1d(x, sizes);
    return {adaptive_avg_pool1d(x, sizes), Tensor()};
  } else if constexpr (n == 2) {
    if (maximum) return adaptive_max_pool2d(x, sizes);
    return {adaptive_avg_pool2d(x, sizes), Tensor()};
  } else {
    if (maximum) return adaptive_max_pool3d(x, sizes);
    return {adaptive_avg_pool3d(x, sizes), Tensor()};
  }
}

#define VESTA_INSTANTIATE(n)                                                                         \
  template VESTA_API TensorPair max_pooled(const Tensor&, const MaxPoolOptions<n>&, bool);           \
  template VESTA_API Tensor avg_pooled(const Tensor&, const AvgPoolOptions<n>&);                     \
  template VESTA_API Tensor lp_pooled(const Tensor&, const LPPoolOptions<n>&);                       \
  template VESTA_API TensorPair adaptive_pooled(const Tensor&, const AdaptivePoolOptions<n>&, bool)
VESTA_INSTANTIATE(1);
VESTA_INSTANTIATE(2);
VESTA_INSTANTIATE(3);

}  // namespace vesta::nn::detail
