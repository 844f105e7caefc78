// Sorting along a dimension.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/sort.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SORT)

/// Returns `value`, a number that appears in `input`, with a gradient that all elements equal to it share, as PyTorch's
/// median() without dim has; NaNs are equal here.
VESTA_API Tensor shared_extremum(const Tensor& input, const Tensor& value);

}  // namespace vesta
