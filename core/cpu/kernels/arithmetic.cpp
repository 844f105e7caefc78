#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/arithmetic.h>
#include <vesta/core/ops/pointwise/arithmetic.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(arithmetic, VESTA_OPS_ARITHMETIC, directly, short_ones)
}
