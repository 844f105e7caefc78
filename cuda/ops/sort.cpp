// Sorting: lines that fit into a tile are sorted there, several to a block. Longer ones are sorted all together, by
// value and then by line; both sorts are stable (kernels/radix_sort.h).
#include <vesta/core/ops/sort.h>

#include <bit>

#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/scan.h>
#include <vesta/cuda/kernels/sort.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/sort_keys.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

constexpr int64_t kNarrow = int64_t(1) << 31;  // element numbers below it use 32 bits on the device

void sort_long_lines(const LineSort& l, Device device) {
  const int64_t lines = l.outer * l.inner, n = lines * l.length;
  const bool wide = itemsize(l.dtype) == 8 || n >= kNarrow;
  Keys values(n, int(8 * itemsize(l.dtype)), wide, device);
  run_value_keys(l, values.input(), wide);
  values.sort();
  if (lines == 1) return run_sort_results(l, values.order(), nullptr, wide);
  Keys by_line(n, int(std::bit_width(uint64_t(lines - 1))), wide, device);
  run_line_keys(l, values.order(), by_line.input(), wide);
  by_line.sort();
  run_sort_results(l, values.order(), by_line.order(), wide);
}

TensorPair sort_kernel(const Tensor& input, MaybeBool, int64_t dim, bool descending) {
  OperandDevice device(input);
  const Tensor values = result_preserving(input, input.dtype()), places = result_preserving(input, DType::int64);
  const ScanPlan plan = order_plan_into(values, input, dim, "sort");
  if (values.numel() == 0) return {values, places};
  LineSort l;
  l.dtype = input.dtype(), l.stream = device.stream();
  l.outer = plan.outer, l.length = plan.length, l.inner = plan.inner, l.descending = descending;
  l.in = plan.input.data_ptr(), l.values = values.data_ptr(), l.places = places.data_ptr<int64_t>();
  if (l.length <= kSortTile) run_sort_lines(l);
  else sort_long_lines(l, input.device());
  return {values, places};
}

}  // namespace

void register_sort() { ops::sort_stable.set_kernel(DeviceType::cuda, sort_kernel); }

}  // namespace vesta::cuda
