// Copies runs of many tensors in one launch. A block takes 1024 units of one tensor; a unit is the largest power of
// two, up to 16 bytes, that every address, stride and length of the launch is a multiple of.
#include <vesta/cuda/kernels/cat.h>

#include <vesta/cuda/kernels/entries.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kUnits = 4;  // of a thread, a block apart

struct alignas(16) Unit16 {
  uint64_t words[2];
};

/// An entry in the kernel's form.
struct Run {
  const char* from;
  int64_t row_stride, at;
  FastDivisor length;  // of a run, in units
  uint32_t n;          // units in all
  uint32_t first_block;
};
struct CatArgs {
  char* out;
  int64_t out_stride;
  int count;
  Run at[kCatEntries];
};

template <class Unit>
VESTA_KERNEL void cat_kernel(VESTA_CONSTANT_ARGUMENT CatArgs a) {
  const Run& e = a.at[entry_of(a.at, a.count, blockIdx.x)];
  const uint32_t first = (blockIdx.x - e.first_block) * (kThreads * kUnits) + threadIdx.x;
  Unit v[kUnits];
  char* to[kUnits];
#pragma unroll
  for (int k = 0; k < kUnits; ++k) {
    const uint32_t i = first + uint32_t(k) * kThreads;
    if (i >= e.n) continue;
    const uint32_t row = e.length.divide(i);
    const int64_t within = int64_t(i - row * e.length.divisor) * int64_t(sizeof(Unit));
    v[k] = *reinterpret_cast<const Unit*>(e.from + row * e.row_stride + within);
    to[k] = a.out + row * a.out_stride + e.at + within;
  }
#pragma unroll
  for (int k = 0; k < kUnits; ++k) {
    if (first + uint32_t(k) * kThreads < e.n) *reinterpret_cast<Unit*>(to[k]) = v[k];
  }
}

template <class Unit>
void run(const CatLaunch& l) {
  CatArgs a;
  a.out = l.out, a.out_stride = l.out_stride, a.count = l.count;
  uint32_t blocks = 0;
  for (int i = 0; i < l.count; ++i) {
    const CatEntry& e = l.entries[i];
    const auto length = uint32_t(e.run / int64_t(sizeof(Unit)));
    const auto n = uint32_t(length * e.rows);
    a.at[i] = {e.from, e.row_stride, e.at, FastDivisor(length), n, blocks};
    blocks += (n + kThreads * kUnits - 1) / (kThreads * kUnits);
  }
  launch_independent("cat", cat_kernel<Unit>, linear_shape(uint64_t(blocks) * kThreads, kThreads, l.stream), a);
}

}  // namespace

void run_cat(const CatLaunch& l) {
  uint64_t all = reinterpret_cast<uintptr_t>(l.out) | uint64_t(l.out_stride);
  for (int i = 0; i < l.count; ++i) {
    const CatEntry& e = l.entries[i];
    all |= reinterpret_cast<uintptr_t>(e.from) | uint64_t(e.row_stride) | uint64_t(e.at) | uint64_t(e.run);
  }
  if (all % 16 == 0) return run<Unit16>(l);
  if (all % 8 == 0) return run<uint64_t>(l);
  if (all % 4 == 0) return run<uint32_t>(l);
  if (all % 2 == 0) return run<uint16_t>(l);
  run<uint8_t>(l);
}

}  // namespace vesta::cuda
