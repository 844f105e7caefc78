#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/pointwise/trigonometric.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_REGISTER_TOPIC(trigonometric, VESTA_POINTWISE_TRIGONOMETRIC)
}
