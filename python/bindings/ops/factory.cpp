#include <vesta/core/ops/factory.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(factory, VESTA_OPS_FACTORY)
}
