// Softmax and its logarithm.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/softmax.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SOFTMAX)

}  // namespace vesta
