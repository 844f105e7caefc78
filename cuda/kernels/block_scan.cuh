// Running sums within a block.
#pragma once
#include <vesta/cuda/kernels/device.cuh>

namespace vesta::cuda {

/// Returns the sum of the values of this thread and all before it, and sets `total` to the sum of all; every thread of
/// a block of `threads` takes part. The order of the additions depends on `threads` alone.
template <int threads, class T>
VESTA_DEVICE T block_sum_through(T value, T& total) {
  constexpr unsigned kWarps = threads / 32;
  VESTA_SHARED(T, warp_sums, kWarps);
  const unsigned lane = lane_index(), warp = warp_index();
  T sum = value;  // of this lane and those before it
  for (unsigned step = 1; step < 32; step *= 2) {
    const T before = shuffle(sum, lane >= step ? lane - step : lane);
    if (lane >= step) sum += before;
  }
  block_barrier();  // the last call's sums have been read
  if (lane == 31) warp_sums[warp] = sum;
  block_barrier();
  T offset = 0;
  total = 0;
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) offset += warp_sums[w];
    total += warp_sums[w];
  }
  return offset + sum;
}

/// Returns the sum of the values of all threads before this one; for integers, where taking `value` off again is exact.
template <int threads, class T>
VESTA_DEVICE T block_sum_before(T value, T& total) {
  return block_sum_through<threads>(value, total) - value;
}

}  // namespace vesta::cuda
