#include <vesta/core/ops/sequence.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(sequence, VESTA_OPS_SEQUENCE)
}
