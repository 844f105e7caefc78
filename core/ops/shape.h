// Rearranging: composites that change shape, order or number of elements.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/shape.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SHAPE)

/// Raises unless `repeats` is a vector of integers, as repeat_interleave takes it.
VESTA_API void check_repeats(const Tensor& repeats);

}  // namespace vesta
