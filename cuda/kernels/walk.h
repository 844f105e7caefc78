// The dimensions that an indexing kernel walks over.
#pragma once
#include <cstdint>

namespace vesta::cuda {

inline constexpr int kWalkDims = 24;  // after merging
inline constexpr int kWalkOperands = 3;

/// Sizes, and strides in bytes of up to three operands; dimension 0 is innermost.
struct WalkDims {
  int ndim = 0;
  int64_t sizes[kWalkDims] = {};
  int64_t strides[kWalkOperands][kWalkDims] = {};
};

}  // namespace vesta::cuda
