#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/index.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(index, VESTA_OPS_INDEX)
}
