#include <vesta/core/ops/view.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(view, VESTA_OPS_VIEW)
}
