#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/select.h>
#include <vesta/core/ops/pointwise/select.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(select, VESTA_OPS_SELECT, directly, short_ones)
}
