// Sorting along a dimension.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/sort.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_SORT)

}  // namespace vesta
