#include <vesta/core/ops/distance.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/distance.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_DISTANCE)

}  // namespace vesta
