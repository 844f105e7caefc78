#include <vesta/core/ops/pool.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(pool, VESTA_OPS_POOL)
}
