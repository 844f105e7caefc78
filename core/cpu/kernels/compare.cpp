#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/pointwise/compare.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_REGISTER_TOPIC(compare, VESTA_POINTWISE_COMPARE)
}
