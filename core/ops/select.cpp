#include <vesta/core/ops/select.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/select.h>
#include <vesta/core/ops/pointwise/select.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SELECT)

}  // namespace vesta
