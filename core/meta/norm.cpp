// Batch, layer, root mean square and group normalisation: shapes.
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/norm_backward.h>

#include <algorithm>
#include <cstddef>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/copy_values.h>

namespace vesta::meta {
namespace {

TensorTriple batch_norm(const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                        MaybeTensor running_var, bool training, double, double) {
  const BatchNormShape shape = batch_norm_shape(input, weight, bias, running_mean, running_var, training);
  if (shape.update) {
    running_mean->impl()->bump("batch_norm");
    running_var->impl()->bump("batch_norm");
  }
  const int64_t channels = training ? shape.channels : 0;  // no statistics are computed in evaluation
  const DType stats = statistics_dtype(input.dtype());
  return {image(input.sizes(), suggests_channels_last(input), input.dtype()), result({channels}, stats),
          result({channels}, stats)};
}

TensorTriple batch_norm_backward(const Tensor&, const Tensor& input, MaybeTensor, const Tensor& mean, const Tensor&,
                                 bool) {
  const int64_t channels = BatchNormShape(input).channels;
  return {image(input.sizes(), suggests_channels_last(input), input.dtype()), result({channels}, mean.dtype()),
          result({channels}, mean.dtype())};
}

TensorTriple batch_norm_activation_backward(const Tensor& grad, const Tensor&, int64_t, double, double,
                                            const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                            const Tensor& invstd, bool training) {
  return batch_norm_backward(grad, input, weight, mean, invstd, training);
}

TensorTriple layer_norm(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeTensor bias, double) {
  check_row_norm("layer_norm", input, normalized_shape, weight, bias);
  Dims statistics(input.sizes());
  std::fill(statistics.end() - std::ptrdiff_t(normalized_shape.size()), statistics.end(), 1);
  const DType wide = statistics_dtype(input.dtype());
  return {like(input), result(statistics, wide), result(statistics, wide)};
}

TensorTriple layer_norm_backward(const Tensor&, const Tensor& input, IntList normalized_shape, MaybeTensor weight,
                                 const Tensor& mean, const Tensor&) {
  check_row_norm("layer_norm", input, normalized_shape, weight, {});
  return {like(input), result(normalized_shape, mean.dtype()), result(normalized_shape, mean.dtype())};
}

TensorPair rms_norm(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeDouble) {
  check_row_norm("rms_norm", input, normalized_shape, weight, {});
  Dims statistics(input.sizes());
  std::fill(statistics.end() - std::ptrdiff_t(normalized_shape.size()), statistics.end(), 1);
  return {like(input), result(statistics, statistics_dtype(input.dtype()))};
}

TensorPair rms_norm_backward(const Tensor&, const Tensor& input, IntList normalized_shape, MaybeTensor weight,
                             const Tensor& rstd) {
  check_row_norm("rms_norm", input, normalized_shape, weight, {});
  return {like(input), result(normalized_shape, rstd.dtype())};
}

/// Group normalisation's result: its input's memory format.
Tensor formatted(const Tensor& input) {
  return empty_image(input.sizes(), suggests_channels_last(input), input.dtype(), input.device());
}

TensorTriple group_norm(const Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t N, int64_t C, int64_t HxW,
                        int64_t group, double) {
  const GroupNormShape shape("native_group_norm", input, weight, bias, N, C, HxW, group);
  const DType wide = statistics_dtype(input.dtype());
  return {formatted(input), result({N, group}, wide), result({N, group}, wide)};
}

TensorTriple group_norm_backward(const Tensor&, const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                 const Tensor&, int64_t N, int64_t C, int64_t HxW, int64_t group) {
  const GroupNormShape shape("_group_norm_backward", input, weight, {}, N, C, HxW, group);
  return {formatted(input), result({C}, mean.dtype()), result({C}, mean.dtype())};
}

}  // namespace

void register_norm() {
  ops::_fused_rms_norm.set_kernel(DeviceType::meta, rms_norm);
  ops::_rms_norm_backward.set_kernel(DeviceType::meta, rms_norm_backward);
  ops::native_group_norm.set_kernel(DeviceType::meta, group_norm);
  ops::_group_norm_backward.set_kernel(DeviceType::meta, group_norm_backward);
  ops::native_layer_norm.set_kernel(DeviceType::meta, layer_norm);
  ops::_layer_norm_backward.set_kernel(DeviceType::meta, layer_norm_backward);
  ops::native_batch_norm.set_kernel(DeviceType::meta, batch_norm);
  ops::_batch_norm_backward.set_kernel(DeviceType::meta, batch_norm_backward);
  ops::_batch_norm_activation_backward.set_kernel(DeviceType::meta, batch_norm_activation_backward);
}

}  // namespace vesta::meta
