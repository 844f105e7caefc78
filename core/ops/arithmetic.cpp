#include <vesta/core/ops/arithmetic.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/arithmetic.h>
#include <vesta/core/ops/pointwise/arithmetic.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_ARITHMETIC)

}  // namespace vesta
