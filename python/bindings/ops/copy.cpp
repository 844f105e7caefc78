#include <vesta/core/ops/copy.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(copy, VESTA_OPS_COPY)
}
