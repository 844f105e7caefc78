// Sequences: their length.
#include <vesta/core/ops/factory.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

Tensor arange(Scalar start, Scalar end, Scalar step, MaybeDType dtype, MaybeDevice) {
  const ArangePlan plan = arange_plan(start, end, step, dtype);
  return result({plan.length}, plan.dtype);
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, MaybeDType dtype, MaybeDevice) {
  return result({steps}, linspace_dtype(start, end, steps, dtype));
}

}  // namespace

void register_factory() {
  ops::arange_start_step.set_kernel(DeviceType::meta, arange);
  ops::linspace.set_kernel(DeviceType::meta, linspace);
}

}  // namespace vesta::meta
