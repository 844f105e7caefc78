// Launches over many tensors at once: a list of entries is the kernel's argument, and a block finds its own entry.
#pragma once
#include <vesta/cuda/kernels/device.cuh>

/// Declares a kernel parameter that stays in constant memory, however it is indexed.
#ifdef __CUDACC__
#define VESTA_CONSTANT_ARGUMENT const __grid_constant__
#else
#define VESTA_CONSTANT_ARGUMENT const
#endif

namespace vesta::cuda {

/// Finds the entry that block `number` belongs to; entries have a `first_block`, in ascending order.
template <class Entry>
VESTA_DEVICE int entry_of(const Entry* at, int n, unsigned number) {
  int low = 0, high = n;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (at[middle].first_block <= number) low = middle;
    else high = middle;
  }
  return low;
}

}  // namespace vesta::cuda
