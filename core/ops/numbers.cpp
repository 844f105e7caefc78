#include <vesta/core/ops/numbers.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/numbers.h>
#include <vesta/core/ops/pointwise/numbers.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_NUMBERS)

}  // namespace vesta
