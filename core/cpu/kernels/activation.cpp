#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/pointwise/activation.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_REGISTER_TOPIC(activation, VESTA_POINTWISE_ACTIVATION)
}
