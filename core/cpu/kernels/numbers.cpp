#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/numbers.h>
#include <vesta/core/ops/pointwise/numbers.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(numbers, VESTA_OPS_NUMBERS, blocks, short_ones)
}
