#include <vesta/core/ops/resample.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(resample, VESTA_OPS_RESAMPLE)
}
