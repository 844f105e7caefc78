// Special functions.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/special.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SPECIAL)

}  // namespace vesta
