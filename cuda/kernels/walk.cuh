// Walks over strided operands: from the index of an element to its offset in each operand.
#pragma once
#include <vesta/cuda/kernels/device.cuh>
#include <vesta/cuda/kernels/walk.h>

namespace vesta::cuda {

/// A divisor that is known at launch: 32-bit numbers (below 2^31) are divided by a multiplication, 64-bit ones in the
/// usual way.
template <class Index>
struct Divisor;
template <>
struct Divisor<uint32_t> : FastDivisor {
  using FastDivisor::FastDivisor;
};
template <>
struct Divisor<uint64_t> {
  uint64_t divisor = 1;
  Divisor() = default;
  explicit Divisor(uint64_t d) : divisor(d) {}
  VESTA_HD uint64_t divide(uint64_t n) const { return n / divisor; }
};

/// The kernel's form of WalkDims. Dimension 0 is innermost; strides are in bytes.
template <class Index, int operands>
struct Walk {
  int ndim;
  Divisor<Index> sizes[kWalkDims];
  int64_t strides[operands][kWalkDims];

  explicit Walk(const WalkDims& dims) : ndim(dims.ndim) {
    for (int d = 0; d < ndim; ++d) {
      sizes[d] = Divisor<Index>(Index(dims.sizes[d]));
      for (int k = 0; k < operands; ++k) strides[k][d] = dims.strides[k][d];
    }
  }
  /// Computes each operand's offset of element i, and returns its coordinate in dimension `marked` (-1: none).
  VESTA_DEVICE Index offsets(Index i, int64_t (&offset)[operands], int marked = -1) const {
    Index coordinate = 0;
    for (int k = 0; k < operands; ++k) offset[k] = 0;
    for (int d = 0; d < ndim; ++d) {
      const Index next = sizes[d].divide(i), at = i - next * sizes[d].divisor;
      if (d == marked) coordinate = at;
      for (int k = 0; k < operands; ++k) offset[k] += int64_t(at) * strides[k][d];
      i = next;
    }
    return coordinate;
  }
};

/// Returns the number of the thread within a grid that may have more than 2^32 threads.
template <class Index>
VESTA_DEVICE Index thread_number() {
  return Index(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace vesta::cuda
