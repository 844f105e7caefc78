#include <vesta/core/ops/scan.h>

#include <vesta/core/ops/copy.h>

namespace vesta {

ScanPlan scan_plan(const Tensor& input, int64_t dim, MaybeDType dtype, const char* op) {
  const int64_t d = wrap_dim(dim, input.dim(), op);
  const DType result = dtype ? *dtype : is_differentiable(input.dtype()) ? input.dtype() : DType::int64;
  VESTA_CHECK(result != DType::bool_, not_implemented, op, ": expected a number dtype, got bool (dtype).");
  ScanPlan plan;
  plan.input = contiguous(input.to(result));
  for (int64_t k = 0; k < input.dim(); ++k) {
    const int64_t n = input.sizes()[size_t(k)];
    (k < d ? plan.outer : k == d ? plan.length : plan.inner) *= n;
  }
  return plan;
}

}  // namespace vesta
