#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/activation.h>
#include <vesta/core/ops/pointwise/activation.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(activation, VESTA_OPS_ACTIVATION, blocks, long_ones)
}
