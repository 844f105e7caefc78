// Arithmetic: the four operations, roots, powers, extrema of two tensors.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/arithmetic.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_ARITHMETIC)

}  // namespace vesta
