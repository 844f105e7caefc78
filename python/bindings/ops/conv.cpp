#include <vesta/core/ops/conv.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(conv, VESTA_OPS_CONV)
}
