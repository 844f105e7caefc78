#include <vesta/core/ops/select.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(select, VESTA_OPS_SELECT)
}
