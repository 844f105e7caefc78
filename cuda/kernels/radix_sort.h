// A stable sort of (key, value) pairs and a running sum, for ops that group equal destinations.
#pragma once
#include <cstdint>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int64_t kSortTile = 2048;  // pairs that a block sorts in its shared memory

inline constexpr int kSortPasses = 8;         // of 64 bits

/// A sort of n pairs by the lowest `bits` of unsigned keys; equal keys keep their order. Keys and values are 32-bit
/// numbers, or 64-bit ones if `wide`.
struct SortLaunch {
  void* keys[2] = {};    // [0]: the input; both are overwritten
  void* values[2] = {};  // values need no input: the pair number i starts with value i
  uint64_t* counts = nullptr;  // sort_counts(n, wide) numbers of scratch
  unsigned* skipped = nullptr;  // for each pass, if it may be skipped, whether it was: of kSortPasses; null: none is
  int64_t n = 0;
  int bits = 0;
  bool wide = false;
  StreamHandle stream = nullptr;
};
/// The partition of a sort into tiles, one per block, and of its keys' bits into passes.
inline constexpr int64_t kSortDigitsOfPass = 256;
inline int64_t sort_tile_of(int64_t n, bool wide) {
  return n < (int64_t(1) << (wide ? 19 : 20)) ? 2048 : wide ? 4096 : 8192;
}
inline int64_t sort_tiles(int64_t n, bool wide) { return (n + sort_tile_of(n, wide) - 1) / sort_tile_of(n, wide); }
/// Returns the numbers of scratch that a sort of n pairs needs; 0 for n <= kSortTile.
inline int64_t sort_counts(int64_t n, bool wide) {
  return n <= kSortTile ? 0 : kSortDigitsOfPass * (sort_tiles(n, wide) + 1);
}
inline int sort_pass_count(int bits) { return (bits + 7) / 8; }
/// Queues passes [first, end) of a sort of more than kSortTile pairs. Each fills the buffers that it does not read; one
/// in which all digits are equal is skipped if it can be.
void run_sort_passes(const SortLaunch& l, int first, int end);
/// Queues a sort; returns which of the two buffers (0 or 1) gets the sorted keys and values.
int run_sort(const SortLaunch& l);

/// Queues data[i] = data[0] + ... + data[i - 1] for i in [0, n], in place: data[n] gets the total. One block does it.
void run_running_sum(uint64_t* data, int64_t n, StreamHandle stream);

}  // namespace vesta::cuda
