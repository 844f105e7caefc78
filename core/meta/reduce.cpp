// Reductions: shapes and dtypes.
#include <vesta/core/ops/reduce.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce_checks.h>

namespace vesta::meta {
namespace {

Tensor sum(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = sum_types(input.dtype(), dtype);
  return result(reduce_shape(input, dim, keepdim, "sum").sizes, types.result);
}

Tensor mean(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = mean_types(input.dtype(), dtype);
  return result(reduce_shape(input, dim, keepdim, "mean").sizes, types.result);
}

Tensor product(const Tensor& input, int64_t dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = sum_types(input.dtype(), dtype);
  return result(reduce_shape(input, MaybeDims(dim), keepdim, "prod").sizes, types.result);
}

Tensor extremum(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op) {
  return result(extremum_shape(input, dim, keepdim, op).sizes, input.dtype());
}
Tensor amax(const Tensor& input, const MaybeDims& dim, bool keepdim) { return extremum(input, dim, keepdim, "amax"); }
Tensor amin(const Tensor& input, const MaybeDims& dim, bool keepdim) { return extremum(input, dim, keepdim, "amin"); }

Tensor logical(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op) {
  if (dim && IntSpan(*dim).empty()) return none_reduced(input);
  const DType dtype = input.dtype() == DType::uint8 ? DType::uint8 : DType::bool_;  // as in PyTorch
  return result(reduce_shape(input, dim, keepdim, op).sizes, dtype);
}
Tensor any(const Tensor& input, const MaybeDims& dim, bool keepdim) { return logical(input, dim, keepdim, "any"); }
Tensor all(const Tensor& input, const MaybeDims& dim, bool keepdim) { return logical(input, dim, keepdim, "all"); }

TensorPair extremum_dim(const Tensor& input, int64_t dim, bool keepdim, const char* op) {
  const ReduceShape shape = place_shape(input, dim, keepdim, op);
  return {result(shape.sizes, input.dtype()), result(shape.sizes, DType::int64)};
}
TensorPair max(const Tensor& input, int64_t dim, bool keepdim) { return extremum_dim(input, dim, keepdim, "max"); }
TensorPair min(const Tensor& input, int64_t dim, bool keepdim) { return extremum_dim(input, dim, keepdim, "min"); }

Tensor place(const Tensor& input, MaybeInt dim, bool keepdim, const char* op) {
  check_place_input(input, dim, op);
  if (dim) return result(place_shape(input, *dim, keepdim, op).sizes, DType::int64);
  return result(keepdim ? Dims(size_t(input.dim()), 1) : Dims(), DType::int64);
}
Tensor argmax(const Tensor& input, MaybeInt dim, bool keepdim) { return place(input, dim, keepdim, "argmax"); }
Tensor argmin(const Tensor& input, MaybeInt dim, bool keepdim) { return place(input, dim, keepdim, "argmin"); }

}  // namespace

void register_reduce() {
  ops::sum_dim.set_kernel(DeviceType::meta, sum);
  ops::mean_dim.set_kernel(DeviceType::meta, mean);
  ops::prod_dim_int.set_kernel(DeviceType::meta, product);
  ops::amax.set_kernel(DeviceType::meta, amax);
  ops::amin.set_kernel(DeviceType::meta, amin);
  ops::any_dims.set_kernel(DeviceType::meta, any);
  ops::all_dims.set_kernel(DeviceType::meta, all);
  ops::max_dim.set_kernel(DeviceType::meta, max);
  ops::min_dim.set_kernel(DeviceType::meta, min);
  ops::argmax.set_kernel(DeviceType::meta, argmax);
  ops::argmin.set_kernel(DeviceType::meta, argmin);
}

}  // namespace vesta::meta
