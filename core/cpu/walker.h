// Walks the elements of a plan row by row.
#pragma once
#include <algorithm>

#include <vesta/core/ops/pointwise.h>
#include <vesta/core/shape.h>

namespace vesta::cpu {

/// A position in a plan's elements: an index per dimension, and the byte offset of each operand there.
struct Walker {
  const PointwisePlan& p;
  int64_t index[kMaxDims];
  int64_t offset[1 + kMaxInputs];  // [0] is the destination's

  Walker(const PointwisePlan& plan, int64_t at) : p(plan) {
    std::fill_n(offset, 1 + p.inputs, 0);
    for (int d = 0; d < p.ndim; ++d) {
      index[d] = at % p.sizes[d];
      at /= p.sizes[d];
      shift(d, index[d]);
    }
  }
  void shift(int d, int64_t by) {
    offset[0] += p.out.strides[d] * by;
    for (int i = 0; i < p.inputs; ++i) offset[1 + i] += p.in[i].strides[d] * by;
  }
  int64_t left_in_row() const { return p.ndim ? p.sizes[0] - index[0] : 1; }
  /// Steps forward by n elements, at most to the end of the row.
  void step(int64_t n) {
    if (p.ndim == 0) return;
    index[0] += n;
    shift(0, n);
    for (int d = 0; index[d] == p.sizes[d] && d + 1 < p.ndim; ++d) {
      shift(d, -index[d]);
      index[d] = 0;
      ++index[d + 1];
      shift(d + 1, 1);
    }
  }
};

/// Returns an operand's stride along a row, in bytes.
inline int64_t row_stride(const PointwisePlan& p, const PointwisePlan::Operand& o) { return p.ndim ? o.strides[0] : 0; }
/// Returns whether an operand's elements are contiguous in the plan's order.
inline bool is_linear(const PointwisePlan& p, const PointwisePlan::Operand& o) {
  int64_t step = itemsize(o.dtype);
  for (int d = 0; d < p.ndim; ++d) {
    if (o.strides[d] != step) return false;
    step *= p.sizes[d];
  }
  return true;
}
/// Returns whether an operand has the same value everywhere.
inline bool is_constant(const PointwisePlan& p, const PointwisePlan::Operand& o) {
  return std::all_of(o.strides, o.strides + p.ndim, [](int64_t s) { return s == 0; });
}

}  // namespace vesta::cpu
