#include <vesta/core/ops/scan.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>

namespace vesta {
namespace {

/// Splits the shape of a tensor at dimension `d`.
ScanPlan split(const Tensor& values, int64_t d) {
  ScanPlan plan;
  plan.input = contiguous(values);
  for (int64_t k = 0; k < values.dim(); ++k) {
    const int64_t n = values.sizes()[size_t(k)];
    (k < d ? plan.outer : k == d ? plan.length : plan.inner) *= n;
  }
  return plan;
}

}  // namespace

ScanPlan scan_plan(const Tensor& input, int64_t dim, MaybeDType dtype, const char* op) {
  const int64_t d = wrap_dim(dim, input.dim(), op);
  const DType result = dtype ? *dtype : is_differentiable(input.dtype()) ? input.dtype() : DType::int64;
  VESTA_CHECK(result != DType::bool_, not_implemented, op, ": expected a number dtype, got bool (dtype).");
  return split(input.to(result), d);
}

ScanPlan order_plan(const Tensor& input, int64_t dim, const char* op) {
  const int64_t d = wrap_dim(dim, input.dim(), op);
  check_real(input, op);
  return split(input, d);
}

}  // namespace vesta
