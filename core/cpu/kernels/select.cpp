#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/pointwise/select.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_REGISTER_TOPIC(select, VESTA_POINTWISE_SELECT)
}
