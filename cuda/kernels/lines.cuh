// One thread's walk along a line of an indexed dimension, element by element: what scatter_, scatter_add_ and
// scatter_reduce_ do with lines too short to share.
#pragma once
#include <vesta/cuda/kernels/index.h>
#include <vesta/cuda/kernels/walk.cuh>

namespace vesta::cuda {

/// Calls update(element of the result, value) for the values of line number `line`, in order. Places that do not exist
/// are reported.
template <class T, class Index, class F>
VESTA_DEVICE void each_along_line(const Walk<Index, 3>& walk, const ElementMoves& m, Index line, F update) {
  int64_t offset[3];
  walk.offsets(line, offset);
  for (int64_t k = 0; k < m.length; ++k) {
    const int64_t at = *reinterpret_cast<const int64_t*>(m.index + offset[1] + k * m.index_step);
    if (uint64_t(at) >= uint64_t(m.size)) {
      report(m.fault, FaultKind::element_index, m.name, at, m.size, m.dim);
      continue;
    }
    update(*reinterpret_cast<T*>(m.self + offset[0] + at * m.stride),
           *reinterpret_cast<const T*>(m.other + offset[2] + k * m.other_step));
  }
}

}  // namespace vesta::cuda
