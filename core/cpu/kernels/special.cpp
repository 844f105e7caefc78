#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/special.h>
#include <vesta/core/ops/pointwise/special.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(special, VESTA_OPS_SPECIAL, blocks, long_ones)
}
