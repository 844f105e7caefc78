// The interface between sorts of lines and those of their loops that are compiled for each instruction set.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// A kernel that returns the index of the first of a line's elements [i, n) that sorts strictly before `root`,
/// ascending or descending; n if there is none. NaN is the largest.
using SkipKernel = int64_t (*)(const void* x, int64_t i, int64_t n, const void* root, bool descending);

/// The largest `count` of a CandidatesKernel, and the capacity of its list of candidates.
inline constexpr int64_t kMostBest = 32, kMostCandidates = 256;

/// A kernel that writes the indices of candidates, elements that include the first `count` <= kMostBest of the sorted
/// line, and returns their number; 0 if there are more than kMostCandidates, or if it meets NaN.
using CandidatesKernel = int64_t (*)(const void* x, int64_t n, int64_t count, bool descending, int64_t* places);

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_sort_kernels(vesta::cpu::SkipKernel (&skips)[vesta::kNumDTypes],
                                                vesta::cpu::CandidatesKernel (&candidates)[vesta::kNumDTypes]))
