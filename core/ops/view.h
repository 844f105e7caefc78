// View ops: new geometry over the same memory. One function serves all devices.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/view.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_VIEW)

/// The bounds of a slice of a dimension, clamped to its size as Python does, and its number of elements.
struct SliceBounds {
  int64_t start, end, length;
};
VESTA_API SliceBounds slice_bounds(int64_t size, MaybeInt start, MaybeInt end, int64_t step, const char* op);

}  // namespace vesta
