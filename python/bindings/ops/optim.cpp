#include <vesta/core/ops/optim.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(optim, VESTA_OPS_OPTIM)
}
