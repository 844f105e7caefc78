// Parts and neighbours of numbers, sums with a factor.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/numbers.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_NUMBERS)

}  // namespace vesta
