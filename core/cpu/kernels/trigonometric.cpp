#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/trigonometric.h>
#include <vesta/core/ops/pointwise/trigonometric.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(trigonometric, VESTA_OPS_TRIGONOMETRIC, blocks, long_ones)
}
