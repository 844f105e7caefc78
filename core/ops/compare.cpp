#include <vesta/core/ops/compare.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/compare.h>
#include <vesta/core/ops/pointwise/compare.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_COMPARE)

}  // namespace vesta
