// A stable radix sort, four bits at a time from the lowest. A tour: a tile is 2048 pairs, eight in a row for each of
// 256 threads. Within a tile, a table counts for each digit and thread; its running sum in that order gives the place
// of each pair, so that equal digits keep their order. A larger sort runs three kernels per digit: counts per tile,
// the running sum over (digit, tile), and the move of every tile's pairs to their places. No step depends on the order
// in which threads or blocks run.
#include <vesta/cuda/kernels/radix_sort.h>

#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/radix_sort.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = kSortThreads, kItems = kSortItems, kDigits = kSortDigits, kDigitBits = kSortDigitBits;

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

/// Counts a tile's digits: counts[digit][tile].
template <class Key>
VESTA_KERNEL void count_digits_kernel(const Key* keys, int64_t n, int shift, uint64_t* counts) {
  constexpr unsigned kWarps = kThreads / 32;
  VESTA_SHARED(unsigned, bins, kWarps* kDigits);
  const unsigned t = threadIdx.x;
  if (t < kWarps * kDigits) bins[t] = 0;
  block_barrier();
  const int64_t begin = int64_t(blockIdx.x) * kSortTile;
#pragma unroll
  for (unsigned k = 0; k < kItems; ++k) {
    const int64_t i = begin + k * kThreads + t;
    if (i < n) atomic_add(&bins[warp_index() * kDigits + digit_of(keys[i], shift)], 1u);
  }
  block_barrier();
  if (t >= kDigits) return;
  unsigned sum = 0;
  for (unsigned w = 0; w < kWarps; ++w) sum += bins[w * kDigits + t];
  counts[uint64_t(t) * gridDim.x + blockIdx.x] = sum;
}

/// Moves a tile's pairs to their places in the order of one digit. `values` is null at first: pair i has value i.
template <class Key>
VESTA_KERNEL void move_pairs_kernel(const Key* keys, const Key* values, Key* keys_out, Key* values_out, int64_t n,
                                    int shift, const uint64_t* counts) {
  VESTA_SHARED(Key, tile_keys, kSortTile);
  VESTA_SHARED(Key, tile_values, kSortTile);
  VESTA_SHARED(unsigned, first, kDigits);
  VESTA_SHARED(uint64_t, base, kDigits);
  const unsigned t = threadIdx.x;
  const int64_t tile = int64_t(blockIdx.x) * kSortTile, begin = tile + t * kItems;
  const unsigned count = begin >= n ? 0 : n - begin < kItems ? unsigned(n - begin) : kItems;
  Key key[kItems];
  unsigned place[kItems];
#pragma unroll
  for (unsigned k = 0; k < kItems; ++k) {
    if (k < count) key[k] = keys[begin + k];
  }
  if (t < kDigits) base[t] = counts[uint64_t(t) * gridDim.x + blockIdx.x];
  rank(key, count, shift, place, first);
#pragma unroll
  for (unsigned k = 0; k < kItems; ++k) {
    if (k >= count) continue;
    tile_keys[place[k]] = key[k];
    tile_values[place[k]] = values ? values[begin + k] : Key(begin + k);
  }
  block_barrier();
  const unsigned filled = n - tile < kSortTile ? unsigned(n - tile) : unsigned(kSortTile);
  for (unsigned i = t; i < filled; i += kThreads) {  // runs of equal digits are written together
    const unsigned d = digit_of(tile_keys[i], shift);
    const uint64_t to = base[d] + (i - first[d]);
    keys_out[to] = tile_keys[i], values_out[to] = tile_values[i];
  }
}

constexpr unsigned kSumThreads = 1024;

VESTA_KERNEL void running_sum_kernel(uint64_t* data, int64_t n) {
  uint64_t before = 0;
  for (int64_t at = 0; at < n; at += kSumThreads) {
    const int64_t i = at + threadIdx.x;
    uint64_t total, sum = block_sum_before<kSumThreads>(i < n ? data[i] : uint64_t(0), total);
    if (i < n) data[i] = before + sum;
    before += total;
  }
  if (threadIdx.x == 0) data[n] = before;
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
  const auto tiles = uint64_t((l.n + kSortTile - 1) / kSortTile);
  const LaunchShape shape = linear_shape(tiles * kThreads, kThreads, l.stream);
  int from = 0;
  for (int shift = 0; shift < l.bits; shift += kDigitBits, from ^= 1) {
    launch_block("sort_count", count_digits_kernel<Key>, shape, keys[from], l.n, shift, l.counts);
    run_running_sum(l.counts, int64_t(kDigits * tiles), l.stream);
    launch_block("sort_move", move_pairs_kernel<Key>, shape, keys[from], shift == 0 ? nullptr : values[from],
                 keys[from ^ 1], values[from ^ 1], l.n, shift, l.counts);
  }
  return from;
}

}  // namespace

int run_sort(const SortLaunch& l) { return l.wide ? sort_array<uint64_t>(l) : sort_array<uint32_t>(l); }

void run_running_sum(uint64_t* data, int64_t n, StreamHandle stream) {
  launch_block("running_sum", running_sum_kernel, linear_shape(1, kSumThreads, stream), data, n);
}

}  // namespace vesta::cuda
