// The interface between sorts of lines and the loops of theirs that are compiled for each instruction set.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// Returns the first of the elements [i, n) of a line that comes before `root` in a stable sort, ascending or
/// descending, which does not count its equals; or n. NaN is the largest.
using SkipKernel = int64_t (*)(const void* x, int64_t i, int64_t n, const void* root, bool descending);

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_skips(vesta::cpu::SkipKernel (&skips)[vesta::kNumDTypes]))
