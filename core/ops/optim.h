// Fused optimizer steps: one op for each optimizer. Formulas: optim_step.h; what devices share: optim_call.h.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/optim.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_OPTIM)

}  // namespace vesta
