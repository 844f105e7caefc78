// The interface between sorts of lines and the loops of theirs that are compiled for each instruction set.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// Returns the first of the elements [i, n) of a line that comes before `root` in a stable sort, ascending or
/// descending, which does not count its equals; or n. NaN is the largest.
using SkipKernel = int64_t (*)(const void* x, int64_t i, int64_t n, const void* root, bool descending);

/// The most best elements that are looked for among candidates, and the most candidates.
inline constexpr int64_t kMostBest = 32, kMostCandidates = 256;

/// Writes the places of a few elements of a line of n, among them the `count` <= kMostBest best of a sort, and returns
/// how many, `count` at least; or 0 where they would be more than kMostCandidates, or a NaN is there.
using CandidatesKernel = int64_t (*)(const void* x, int64_t n, int64_t count, bool descending, int64_t* places);

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_sort_kernels(vesta::cpu::SkipKernel (&skips)[vesta::kNumDTypes],
                                                vesta::cpu::CandidatesKernel (&candidates)[vesta::kNumDTypes]))
