// Comparisons and their operators, logic and bits.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/compare.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_COMPARE)

VESTA_OPERATOR(==, eq)
VESTA_OPERATOR(!=, ne)
VESTA_OPERATOR(<, lt)
VESTA_OPERATOR(<=, le)
VESTA_OPERATOR(>, gt)
VESTA_OPERATOR(>=, ge)

}  // namespace vesta
