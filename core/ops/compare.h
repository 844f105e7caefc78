// Comparisons, logic and bits.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/compare.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_COMPARE)

}  // namespace vesta
