// Activations, and the error functions that they are made of.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/activation.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_ACTIVATION)

}  // namespace vesta
