#include <vesta/core/ops/random.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(random, VESTA_OPS_RANDOM)
}
