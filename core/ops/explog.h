// Exponentials and logarithms.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/explog.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_EXPLOG)

}  // namespace vesta
