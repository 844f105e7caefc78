// The parts that kernels share which move elements and depend only on their size.
#pragma once
#include <cstdint>

#include <vesta/core/base/macros.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// 16 bytes that are moved as one.
struct Wide {
  uint64_t half[2];
};

}  // namespace vesta::cpu::VESTA_ISA_NS
