#include <vesta/core/ops/sparse.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(sparse, VESTA_OPS_SPARSE)
}
