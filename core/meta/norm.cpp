// Batch and layer normalisation: shapes.
#include <vesta/core/ops/norm.h>

#include <algorithm>
#include <cstddef>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

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

TensorTriple batch_norm_gradient(const Tensor&, const Tensor& input, MaybeTensor, const Tensor& mean, const Tensor&,
                                 bool) {
  const int64_t channels = BatchNormShape(input).channels;
  return {image(input.sizes(), suggests_channels_last(input), input.dtype()), result({channels}, mean.dtype()),
          result({channels}, mean.dtype())};
}

TensorTriple layer_norm(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeTensor bias, double) {
  check_row_norm("layer_norm", input, normalized_shape, weight, bias);
  Dims statistics(input.sizes());
  std::fill(statistics.end() - std::ptrdiff_t(normalized_shape.size()), statistics.end(), 1);
  const DType wide = statistics_dtype(input.dtype());
  return {like(input), result(statistics, wide), result(statistics, wide)};
}

TensorTriple layer_norm_gradient(const Tensor&, const Tensor& input, IntList normalized_shape, MaybeTensor weight,
                                 const Tensor& mean, const Tensor&) {
  check_row_norm("layer_norm", input, normalized_shape, weight, {});
  return {like(input), result(normalized_shape, mean.dtype()), result(normalized_shape, mean.dtype())};
}

}  // namespace

void register_norm() {
  ops::native_layer_norm.set_kernel(DeviceType::meta, layer_norm);
  ops::_layer_norm_backward.set_kernel(DeviceType::meta, layer_norm_gradient);
  ops::native_batch_norm.set_kernel(DeviceType::meta, batch_norm);
  ops::_batch_norm_backward.set_kernel(DeviceType::meta, batch_norm_gradient);
}

}  // namespace vesta::meta
