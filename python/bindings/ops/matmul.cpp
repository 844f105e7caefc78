#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/matmul.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(matmul, VESTA_OPS_MATMUL)
}
