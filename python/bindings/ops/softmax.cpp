#include <vesta/core/ops/softmax.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(softmax, VESTA_OPS_SOFTMAX)
}
