#include <vesta/core/ops/loss.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(loss, VESTA_OPS_LOSS)
}
