#include <vesta/core/ops/explog.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/explog.h>
#include <vesta/core/ops/pointwise/explog.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_EXPLOG)

}  // namespace vesta
