// A stable radix sort. A tour: up to 2048 pairs are sorted by one block (radix_sort.cuh), four bits at a time from the
// lowest. A larger sort takes up to eight bits at a time, by three kernels (radix_pass.cuh): counts of digits per tile,
// their running sums over the tiles, and the move of every tile's pairs to their places. Within a tile, a table counts
// for each digit and warp; its running sum in that order gives the place of each pair, so that equal digits keep their
// order. No step depends on the order in which threads or blocks run.
#include <vesta/cuda/kernels/radix_sort.h>

#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/radix_pass.cuh>
#include <vesta/cuda/kernels/radix_sort.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = kSortThreads, kItems = kSortItems;

/// Sorts a whole array of at most a tile.
template <class Key>
VESTA_KERNEL void sort_tile_kernel(const Key* keys, Key* keys_out, Key* values_out, unsigned n, int bits) {
  VESTA_SHARED(Key, tile_keys, kSortTile);
  VESTA_SHARED(Key, tile_values, kSortTile);
  const unsigned begin = threadIdx.x * kItems, count = begin >= n ? 0 : n - begin < kItems ? n - begin : kItems;
  Key key[kItems], value[kItems];
#pragma unroll
  for (unsigned k = 0; k < kItems; ++k) {
    if (k < count) key[k] = keys[begin + k], value[k] = Key(begin + k);
  }
  sort_tile(key, value, count, bits, tile_keys, tile_values);
#pragma unroll
  for (unsigned k = 0; k < kItems; ++k) {
    if (k < count) keys_out[begin + k] = key[k], values_out[begin + k] = value[k];
  }
}

constexpr unsigned kSumThreads = 1024;

/// Each thread takes eight numbers in a row at a time.
VESTA_KERNEL void running_sum_kernel(uint64_t* data, int64_t n) {
  constexpr int64_t kEach = 8;
  uint64_t before = 0;
  for (int64_t at = 0; at < n; at += kSumThreads * kEach) {
    const int64_t first = at + threadIdx.x * kEach;
    uint64_t v[kEach], own = 0, total;
    VESTA_UNROLL
    for (int64_t k = 0; k < kEach; ++k) v[k] = first + k < n ? data[first + k] : 0;
    VESTA_UNROLL
    for (int64_t k = 0; k < kEach; ++k) own += v[k];
    uint64_t sum = before + block_sum_before<kSumThreads>(own, total);
    VESTA_UNROLL
    for (int64_t k = 0; k < kEach; ++k) {
      if (first + k < n) data[first + k] = sum;
      sum += v[k];
    }
    before += total;
  }
  if (threadIdx.x == 0) data[n] = before;
}

template <class Key>
void sort_passes(const SortLaunch& l, int first, int end) {
  const PairBuffers<Key> buffers(l);
  for (int k = first; k < end; ++k) run_pass<Key>(l, k, PairsIn<Key>{buffers, k == 0}, PairsOut<Key>{buffers});
}

template <class Key>
int sort_array(const SortLaunch& l) {
  Key* keys[] = {static_cast<Key*>(l.keys[0]), static_cast<Key*>(l.keys[1])};
  Key* values[] = {static_cast<Key*>(l.values[0]), static_cast<Key*>(l.values[1])};
  if (l.n <= kSortTile) {
    launch_block("sort_tile", sort_tile_kernel<Key>, linear_shape(1, kThreads, l.stream), keys[0], keys[1], values[1],
                 unsigned(l.n), l.bits);
    return 1;
  }
  const int passes = sort_pass_count(l.bits);
  SortLaunch all = l;
  all.skipped = nullptr;  // the host knows where the result is
  sort_passes<Key>(all, 0, passes);
  return passes % 2;
}

}  // namespace

int run_sort(const SortLaunch& l) { return l.wide ? sort_array<uint64_t>(l) : sort_array<uint32_t>(l); }

void run_sort_passes(const SortLaunch& l, int first, int end) {
  if (l.wide) sort_passes<uint64_t>(l, first, end);
  else sort_passes<uint32_t>(l, first, end);
}

void run_running_sum(uint64_t* data, int64_t n, StreamHandle stream) {
  launch_block("running_sum", running_sum_kernel, linear_shape(1, kSumThreads, stream), data, n);
}

}  // namespace vesta::cuda
