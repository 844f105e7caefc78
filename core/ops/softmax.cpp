#include <vesta/core/ops/softmax.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/softmax.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SOFTMAX)

}  // namespace vesta
