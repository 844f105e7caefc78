#include <vesta/core/ops/trigonometric.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(trigonometric, VESTA_OPS_TRIGONOMETRIC)
}
