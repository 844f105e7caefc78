#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/compare.h>
#include <vesta/core/ops/pointwise/compare.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(compare, VESTA_OPS_COMPARE, directly, short_ones)
}
