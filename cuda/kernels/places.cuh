// Positions that index tensors point at, on the device.
#pragma once
#include <vesta/cuda/kernels/device.cuh>
#include <vesta/cuda/kernels/index.h>

namespace vesta::cuda {

constexpr int64_t kBadPlace = -1;

/// Returns the offset of position j in bytes; reports a position out of range and returns kBadPlace.
VESTA_DEVICE int64_t place_of(const Places& p, uint64_t j) {
  int64_t offset = 0;
  for (int k = 0; k < p.n; ++k) {
    const int64_t given = p.index[k][j], size = p.size[k];
    const int64_t at = given + (p.wraps && given < 0 ? size : 0);
    if (uint64_t(at) >= uint64_t(size)) {
      report(p.fault, p.kind, p.op, given, size, p.dim[k]);
      return kBadPlace;
    }
    offset += at * p.stride[k];
  }
  return offset;
}

}  // namespace vesta::cuda
