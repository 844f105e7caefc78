// Sorts: shapes.
#include <vesta/core/ops/sort.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/scan.h>
#include <vesta/core/ops/ties.h>

namespace vesta::meta {
namespace {

TensorPair sort(const Tensor& input, MaybeBool, int64_t dim, bool) {
  order_plan(input, dim, "sort");
  return {result_preserving(input, input.dtype()), result_preserving(input, DType::int64)};
}

Tensor places_by_rank(const Tensor& input, int64_t first, int64_t count, int64_t dim, bool) {
  const ScanPlan plan = order_plan(input, dim, "_places_by_rank");
  check_ranks(plan, first, count, "_places_by_rank");
  return result(with_size(input, wrap_dim(dim, input.dim(), "_places_by_rank"), count), DType::int64);
}

Tensor places_with_ties(const Tensor& input, int64_t, int64_t count, int64_t dim, bool, Text) {
  order_plan(input, dim, "_places_with_ties");
  return result(with_size(input, wrap_dim(dim, input.dim(), "_places_with_ties"), count), DType::int64);
}

Tensor mode_places(const Tensor& input, int64_t dim) {
  order_plan(input, dim, "mode");
  return result(with_size(input, wrap_dim(dim, input.dim(), "mode"), 1), DType::int64);
}

Tensor searchsorted(const Tensor&, const Tensor& values, bool) { return like(values, DType::int64); }

}  // namespace

void register_sort() {
  ops::sort_stable.set_kernel(DeviceType::meta, sort);
  ops::_places_by_rank.set_kernel(DeviceType::meta, places_by_rank);
  ops::_places_with_ties.set_kernel(DeviceType::meta, places_with_ties);
  ops::_mode_places.set_kernel(DeviceType::meta, mode_places);
  ops::_searchsorted.set_kernel(DeviceType::meta, searchsorted);
}

}  // namespace vesta::meta
