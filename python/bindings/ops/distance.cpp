#include <vesta/core/ops/distance.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(distance, VESTA_OPS_DISTANCE)
}
