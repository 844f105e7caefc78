#include <vesta/core/ops/norm.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(norm, VESTA_OPS_NORM)
}
