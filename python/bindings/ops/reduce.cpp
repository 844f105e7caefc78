#include <vesta/core/ops/reduce.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(reduce, VESTA_OPS_REDUCE)
}
