#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/numbers.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(numbers, VESTA_OPS_NUMBERS)
}
