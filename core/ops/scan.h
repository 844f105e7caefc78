// Scans and sorts: ops on the lines along a dimension. Checks and geometry here; devices walk the lines.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// A scan or sort after its checks: a contiguous input, [outer, length, inner].
struct ScanPlan {
  Tensor input;
  int64_t outer = 1, length = 1, inner = 1;
};
/// Checks a running sum, determines its dtype as for a sum, and converts the input.
VESTA_API ScanPlan scan_plan(const Tensor& input, int64_t dim, MaybeDType dtype, const char* op);
/// Checks an op that compares the elements of a line. Error(type): a complex dtype.
VESTA_API ScanPlan order_plan(const Tensor& input, int64_t dim, const char* op);
/// Does the same for a result that has the input's shape, and is dense: dimensions go in the order of its memory.
VESTA_API ScanPlan order_plan_into(const Tensor& result, const Tensor& input, int64_t dim, const char* op);
/// Checks that lines of a plan have `count` ranks from `first` on. Error(runtime).
VESTA_API void check_ranks(const ScanPlan& plan, int64_t first, int64_t count, const char* op);
/// Makes a result of the input's shape and layout (PyTorch's preserve_format), or takes the tensor of out= that fits.
VESTA_API Tensor result_preserving(const Tensor& input, DType dtype);

}  // namespace vesta
