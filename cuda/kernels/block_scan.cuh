// Running sums within a block.
#pragma once
#include <vesta/cuda/kernels/device.cuh>

namespace vesta::cuda {

/// Combines the values of this thread and all before it, and sets `total` to what all give; every thread of a block of
/// `threads` takes part. The order of the operations depends on `threads` alone.
template <int threads, class T, class F>
VESTA_DEVICE T block_scan_through(T value, T& total, T identity, F combine) {
  constexpr unsigned kWarps = threads / 32;
  VESTA_SHARED(T, of_warps, kWarps);
  const unsigned lane = lane_index(), warp = warp_index();
  T through = value;  // of this lane and those before it
  for (unsigned step = 1; step < 32; step *= 2) {
    const T before = shuffle(through, lane >= step ? lane - step : lane);
    if (lane >= step) through = combine(before, through);
  }
  block_barrier();  // what the last call's warps gave has been read
  if (lane == 31) of_warps[warp] = through;
  block_barrier();
  T offset = identity;
  total = identity;
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) offset = combine(offset, of_warps[w]);
    total = combine(total, of_warps[w]);
  }
  return combine(offset, through);
}

/// Returns the sum of the values of this thread and all before it, and sets `total` to the sum of all.
template <int threads, class T>
VESTA_DEVICE T block_sum_through(T value, T& total) {
  return block_scan_through<threads>(value, total, T(0), [](T a, T b) { return T(a + b); });
}

/// Returns the sum of the values of all threads before this one; for integers, where taking `value` off again is exact.
template <int threads, class T>
VESTA_DEVICE T block_sum_before(T value, T& total) {
  return block_sum_through<threads>(value, total) - value;
}

}  // namespace vesta::cuda
