#include <vesta/core/cpu/loops.h>
#include <vesta/core/ops/lists/explog.h>
#include <vesta/core/ops/pointwise/explog.h>

namespace vesta::cpu::VESTA_ISA_NS {
VESTA_CPU_TOPIC(explog, VESTA_OPS_EXPLOG, blocks, long_ones)
}
