// Axes of a strided operand as plain data: a tensor's dimensions after neighbours are merged.
#pragma once
#include <cstdint>

namespace vesta::cuda {

inline constexpr int kMaxAxes = 8;  // after merging; a tensor with more is copied first

/// Sizes and strides (in elements), innermost first.
struct Axes {
  int count = 0;
  int64_t sizes[kMaxAxes] = {};
  int64_t strides[kMaxAxes] = {};

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < count; ++d) n *= sizes[d];
    return n;
  }
};

}  // namespace vesta::cuda
