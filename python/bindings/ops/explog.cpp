#include <vesta/core/ops/explog.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(explog, VESTA_OPS_EXPLOG)
}
