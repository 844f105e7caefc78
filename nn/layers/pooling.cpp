#include <vesta/nn/layers/pooling.h>

#include <algorithm>
#include <cmath>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/pool.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>

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

namespace {

/// Returns the sizes that the pooling had: the smallest of those that fit, or what was asked for, within a stride.
template <size_t n>
Dims unpooled_sizes(const Tensor& x, const MaxUnpoolOptions<n>& o, const std::optional<Shape>& asked) {
  Dims sizes;
  for (size_t d = 0; d < n; ++d) {
    const int64_t stride = o.stride->v[d];
    VESTA_CHECK(stride > 0, runtime, "max_unpool", n, "d: expected strides greater than zero, got ", stride, ".");
    sizes.push_back((x.size(int64_t(d) - int64_t(n)) - 1) * stride + o.kernel_size.v[d] - 2 * o.padding.v[d]);
  }
  if (!asked) return sizes;
  const IntSpan given(*asked);
  VESTA_CHECK(given.size() == n || given.size() == n + 2, value, "max_unpool", n, "d: output_size should contain ", n,
              " or ", n + 2, " elements, but it has ", given.size(), ".");
  for (size_t d = 0; d < n; ++d) {
    const int64_t size = given[given.size() - n + d], stride = o.stride->v[d], least = sizes[d];
    VESTA_CHECK(least - stride < size && size < least + stride, value, "max_unpool", n, "d: invalid output_size ", size,
                " (dim ", d, " must be between ", least - stride, " and ", least + stride, ").");
    sizes[d] = size;
  }
  return sizes;
}

}  // namespace

template <size_t n>
Tensor max_unpooled(const Tensor& x, const Tensor& indices, const MaxUnpoolOptions<n>& o,
                    const std::optional<Shape>& output_size) {
  const int64_t dims = int64_t(n);
  VESTA_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, value, "max_unpool", n, "d: expected an input of ", n + 1,
              " or ", n + 2, " dimensions, got ", x.dim(), " (input).");
  VESTA_CHECK(std::ranges::equal(x.sizes(), indices.sizes()), runtime, "max_unpool", n,
              "d: expected indices of the input's shape ", x.sizes(), ", got ", indices.sizes(), " (indices).");
  const Dims sizes = unpooled_sizes(x, o, output_size);
  int64_t plane = 1;
  for (int64_t size : sizes) plane *= size;
  const auto lines_of = [&](const Tensor& t) { return flatten(flatten(t, 0, -dims - 1), 1); };
  const Tensor flat = lines_of(x), places = lines_of(indices);
  if (places.numel() && has_values(places)) {
    VESTA_CHECK(min(places).item<int64_t>() >= 0 && max(places).item<int64_t>() < plane, runtime, "max_unpool", n,
                "d: expected indices in [0, ", plane, "), got some outside (indices). Check output_size.");
  }
  // Windows that overlap may name a position several times: all of them hold the same value.
  const Tensor lines = unsqueeze(arange(0, flat.size(0), 1, DType::int64, x.device()), 1);
  Dims shape(x.sizes().first(size_t(x.dim() - dims)));
  for (int64_t size : sizes) shape.push_back(size);
  return reshape(index_put(zeros({flat.size(0), plane}, x.dtype(), x.device()), {lines, places}, flat), shape);
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

template <size_t n>
TensorPair fractional_pooled(const Tensor& x, const FractionalMaxPoolOptions<n>& o, const Tensor& given) {
  const int64_t dims = int64_t(n);
  VESTA_CHECK(o.output_size || o.output_ratio, value, "fractional_max_pool", n,
              "d requires specifying either an output_size or an output_ratio");
  VESTA_CHECK(x.dim() == dims + 1 || x.dim() == dims + 2, value, "fractional_max_pool", n, "d: expected an input of ",
              n + 1, " or ", n + 2, " dimensions, got ", x.dim(), " (input).");
  const Tensor input = x.dim() == dims + 2 ? x : unsqueeze(x, 0);
  Ints<n> outputs;
  for (size_t i = 0; i < n; ++i) {
    if (o.output_size) {
      outputs.v[i] = o.output_size->v[i];
      continue;
    }
    const std::vector<double>& ratios = o.output_ratio->v;
    VESTA_CHECK(ratios.size() == 1 || ratios.size() == n, value, "fractional_max_pool", n, "d: expected one number or ",
                n, ", got ", ratios.size(), " (output_ratio).");
    outputs.v[i] = int64_t(double(input.size(int64_t(i) + 2)) * ratios[ratios.size() == n ? i : 0]);
  }
  const Tensor samples =
      given.defined() ? given : rand({input.size(0), input.size(1), dims}, nullptr, x.dtype(), x.device());
  const TensorPair r = _fractional_max_pool(input, samples, outputs, o.kernel_size);
  if (x.dim() == dims + 2) return r;
  return {squeeze(std::get<0>(r), 0), squeeze(std::get<1>(r), 0)};
}

#define VESTA_INSTANTIATE(n)                                                                         \
  template VESTA_API TensorPair max_pooled(const Tensor&, const MaxPoolOptions<n>&, bool);           \
  template VESTA_API Tensor max_unpooled(const Tensor&, const Tensor&, const MaxUnpoolOptions<n>&,    \
                                         const std::optional<Shape>&);                               \
  template VESTA_API Tensor avg_pooled(const Tensor&, const AvgPoolOptions<n>&);                     \
  template VESTA_API Tensor lp_pooled(const Tensor&, const LPPoolOptions<n>&);                       \
  template VESTA_API TensorPair adaptive_pooled(const Tensor&, const AdaptivePoolOptions<n>&, bool)
VESTA_INSTANTIATE(1);
VESTA_INSTANTIATE(2);
VESTA_INSTANTIATE(3);
template VESTA_API TensorPair fractional_pooled(const Tensor&, const FractionalMaxPoolOptions<2>&, const Tensor&);
template VESTA_API TensorPair fractional_pooled(const Tensor&, const FractionalMaxPoolOptions<3>&, const Tensor&);

}  // namespace vesta::nn::detail
