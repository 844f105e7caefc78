#include <vesta/core/ops/compare.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(compare, VESTA_OPS_COMPARE)
}
