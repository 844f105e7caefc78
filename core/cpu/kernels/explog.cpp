#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/pointwise/explog.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_REGISTER_TOPIC(explog, VESTA_POINTWISE_EXPLOG)
}
