#include <vesta/core/ops/special.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/special.h>
#include <vesta/core/ops/pointwise/special.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SPECIAL)

}  // namespace vesta
