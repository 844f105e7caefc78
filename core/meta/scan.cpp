// Running sums, products and extrema: shapes.
#include <vesta/core/ops/scan.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/reduce.h>

namespace vesta::meta {
namespace {

Tensor running(const Tensor& input, int64_t dim, MaybeDType dtype, const char* op) {
  return like(scan_plan(input, dim, dtype, op).input);
}
Tensor cumsum(const Tensor& input, int64_t dim, MaybeDType dtype) { return running(input, dim, dtype, "cumsum"); }
Tensor cumprod(const Tensor& input, int64_t dim, MaybeDType dtype) { return running(input, dim, dtype, "cumprod"); }

Tensor logcumsumexp(const Tensor& input, int64_t dim) {
  if (input.is_complex()) return ops::logcumsumexp.body()(input, dim);
  check_floating(input, "logcumsumexp");
  order_plan(input, dim, "logcumsumexp");
  return like(input);
}

TensorPair extrema(const Tensor& input, int64_t dim, const char* op) {
  order_plan(input, dim, op);
  return {like(input), like(input, DType::int64)};
}
TensorPair cummax(const Tensor& input, int64_t dim) { return extrema(input, dim, "cummax"); }
TensorPair cummin(const Tensor& input, int64_t dim) { return extrema(input, dim, "cummin"); }

}  // namespace

void register_scan() {
  ops::cumsum.set_kernel(DeviceType::meta, cumsum);
  ops::cumprod.set_kernel(DeviceType::meta, cumprod);
  ops::logcumsumexp.set_kernel(DeviceType::meta, logcumsumexp);
  ops::cummax.set_kernel(DeviceType::meta, cummax);
  ops::cummin.set_kernel(DeviceType::meta, cummin);
}

}  // namespace vesta::meta
