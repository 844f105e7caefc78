// Trigonometric and hyperbolic functions.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/trigonometric.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_TRIGONOMETRIC)

}  // namespace vesta
