#include <vesta/core/ops/sort.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(sort, VESTA_OPS_SORT)
}
