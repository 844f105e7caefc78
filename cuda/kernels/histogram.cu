// Histograms: a block counts in shared memory, and adds what it has counted to the result. Integers may be added in any
// order. Few bins have a counter for each lane of a warp, so that lanes with equal elements do not wait for each other.
#include <vesta/cuda/kernels/histogram.h>

#include <algorithm>
#include <type_traits>

#include <vesta/cuda/kernels/packs.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256, kCounters = 8192;
constexpr int kAhead = 8;  // elements of a thread that are loaded at once
constexpr int64_t kPart = int64_t(kThreads) * kAhead * 8;  // elements of a block, of at most kMostBlocks
constexpr int64_t kMostBlocks = 132 * 6;  // what an H200 runs at once

VESTA_DEVICE void add_to(unsigned long long* p, unsigned long long v) {
#ifdef __CUDACC__
  atomicAdd(p, v);
#else
  atomic_add(p, v);
#endif
}

template <class T, class C>
VESTA_KERNEL void histogram_kernel(HistogramLaunch l, unsigned copies) {
  VESTA_SHARED(unsigned, counters, kCounters);
  const int64_t used = l.bins * copies;  // 0: the result is counted in
  for (int64_t i = threadIdx.x; i < used; i += kThreads) counters[i] = 0;
  block_barrier();
  const C min = C(l.min), max = C(l.max), bins = C(l.bins), range = C(l.max - l.min);
  const T* const x = reinterpret_cast<const T*>(l.x);
  VESTA_ROLLED
  for (int64_t first = int64_t(blockIdx.x) * kThreads * kAhead; first < l.n;
       first += int64_t(gridDim.x) * kThreads * kAhead) {
    T v[kAhead];
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t i = first + int64_t(k) * kThreads + threadIdx.x;
      v[k] = i < l.n ? x[i] : T();
    }
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const C value = C(convert<compute_of<T>>(v[k]));
      if (first + int64_t(k) * kThreads + threadIdx.x >= l.n || !(value >= min && value <= max)) continue;
      const int64_t place = int64_t((value - min) * bins / range), bin = place < l.bins ? place : l.bins - 1;
      if (copies) atomic_add(counters + bin * copies + threadIdx.x % copies, 1u);
      else add_to(l.counts + bin, 1);
    }
  }
  block_barrier();
  for (int64_t bin = threadIdx.x; bin < (copies ? l.bins : 0); bin += kThreads) {
    unsigned long long sum = 0;
    for (unsigned c = 0; c < copies; ++c) sum += counters[bin * copies + (c + threadIdx.x) % copies];
    if (sum) add_to(l.counts + bin, sum);
  }
}

}  // namespace

void run_histogram(const HistogramLaunch& l) {
  unsigned copies = 32;
  while (copies > 0 && l.bins * copies > int64_t(kCounters)) copies /= 2;
  visit_device<kReals>(l.dtype, [&]<class T>() {
    const int64_t blocks = std::min((l.n + kPart - 1) / kPart, kMostBlocks);
    const LaunchShape shape = linear_shape(uint64_t(blocks) * kThreads, kThreads, l.stream);
    if constexpr (std::is_same_v<compute_of<T>, float>) {
      if (l.computed == DType::float32) return launch_block("histogram", histogram_kernel<T, float>, shape, l, copies);
    }
    launch_block("histogram", histogram_kernel<T, double>, shape, l, copies);
  });
}

}  // namespace vesta::cuda
