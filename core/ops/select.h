// Choices between values: where and the clamps.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/select.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SELECT)

}  // namespace vesta
