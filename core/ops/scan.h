// Scans: running sums along a dimension. Checks and geometry here; devices add up.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Is a scan after its checks: a contiguous input of the result's dtype, [outer, length, inner].
struct ScanPlan {
  Tensor input;
  int64_t outer = 1, length = 1, inner = 1;
};
/// Checks a scan, settles its dtype as a sum's, and converts the input.
VESTA_API ScanPlan scan_plan(const Tensor& input, int64_t dim, MaybeDType dtype, const char* op);

}  // namespace vesta
