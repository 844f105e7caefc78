// Rounding, remainders, frexp, nextafter, lerp, addcmul, addcdiv.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/numbers.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_NUMBERS)

}  // namespace vesta
