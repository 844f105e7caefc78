#include <vesta/cuda/kernels/linalg.h>

#include <vesta/cuda/kernels/device.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 128;

VESTA_KERNEL void permutation_kernel(PermutationLaunch l) {
  for (int64_t b = int64_t(global_index()); b < l.count; b += int64_t(gridDim.x) * blockDim.x) {
    int64_t* order = l.order + b * l.rows;
    for (int64_t i = 0; i < l.rows; ++i) order[i] = i;
    for (int64_t i = 0; i < l.n; ++i) {
      const int64_t other = l.pivots[b * l.n + i] - 1;
      if (other < 0 || other >= l.rows) {
        report(l.fault, FaultKind::element_index, l.name, other + 1, l.rows);
        continue;
      }
      const int64_t kept = order[i];
      order[i] = order[other];
      order[other] = kept;
    }
  }
}

}  // namespace

void run_permutation(const PermutationLaunch& l) {
  const int64_t threads = l.count < (1 << 20) ? l.count : 1 << 20;
  launch_independent(l.name, permutation_kernel, linear_shape(uint64_t(threads), kThreads, l.stream), l);
}

}  // namespace vesta::cuda
