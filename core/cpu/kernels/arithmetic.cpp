#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/pointwise/arithmetic.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_REGISTER_TOPIC(arithmetic, VESTA_POINTWISE_ARITHMETIC)
}
