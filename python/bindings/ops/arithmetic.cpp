#include <vesta/core/ops/arithmetic.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(arithmetic, VESTA_OPS_ARITHMETIC)
}
