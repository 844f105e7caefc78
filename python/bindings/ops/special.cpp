#include <vesta/core/ops/special.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(special, VESTA_OPS_SPECIAL)
}
