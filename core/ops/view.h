// View ops: new geometry over the same memory. One function serves all devices.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/view.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_VIEW)

/// Returns how many elements a slice of a dimension of `size` has and clamps its bounds, as Python does.
struct SliceBounds {
  int64_t start, end, length;
};
VESTA_API SliceBounds slice_bounds(int64_t size, MaybeInt start, MaybeInt end, int64_t step, const char* op);

}  // namespace vesta
