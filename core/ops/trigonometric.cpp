#include <vesta/core/ops/trigonometric.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/trigonometric.h>
#include <vesta/core/ops/pointwise/trigonometric.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_TRIGONOMETRIC)

}  // namespace vesta
