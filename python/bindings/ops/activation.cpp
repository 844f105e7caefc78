#include <vesta/core/ops/activation.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(activation, VESTA_OPS_ACTIVATION)
}
