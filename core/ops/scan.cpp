#include <vesta/core/ops/scan.h>

#include <algorithm>
#include <numeric>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/view.h>

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

void check_ranks(const ScanPlan& plan, int64_t first, int64_t count, const char* op) {
  VESTA_CHECK(first >= 0 && count >= 0 && first <= plan.length && count <= plan.length - first, runtime, op,
              ": expected ranks of ", plan.length, " elements, got ", count, " from ", first, ".");
}

ScanPlan order_plan_into(const Tensor& result, const Tensor& input, int64_t dim, const char* op) {
  if (result.is_contiguous()) return order_plan(input, dim, op);
  const int64_t d = wrap_dim(dim, input.dim(), op);
  check_real(input, op);
  Dims order(size_t(input.dim()), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return result.stride(a) > result.stride(b); });
  return split(permute(input, order), std::ranges::find(order, d) - order.begin());
}

Tensor result_preserving(const Tensor& input, DType dtype) {
  const bool rows = input.is_contiguous() && !suggests_channels_last(input);
  return rows ? result_tensor(input.sizes(), dtype, input.device()) : empty_preserving(input, dtype, input.device());
}

}  // namespace vesta
