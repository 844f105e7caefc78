#include <vesta/core/ops/activation.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/activation.h>
#include <vesta/core/ops/pointwise/activation.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_ACTIVATION)

}  // namespace vesta
