// Rearranging: composites that change shape, order or number of elements.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/shape.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SHAPE)

}  // namespace vesta
