#include <vesta/core/ops/shape.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(shape, VESTA_OPS_SHAPE)
}
