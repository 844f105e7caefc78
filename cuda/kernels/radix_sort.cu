// A stable radix sort. A tour: up to 2048 pairs are sorted by one block (radix_sort.cuh), four bits at a time from the
// lowest. A larger sort takes up to eight bits at a time, by three kernels: counts of digits per tile, their running
// sums over the tiles, and the move of every tile's pairs to their places. Within a tile, a table counts for each digit
// and warp; its running sum in that order gives the place of each pair, so that equal digits keep their order. No step
// depends on the order in which threads or blocks run.
#include <vesta/cuda/kernels/radix_sort.h>

#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/radix_sort.cuh>
#include <vesta/cuda/kernels/teams.cuh>

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

constexpr unsigned kPassThreads = 512, kPassWarps = kPassThreads / 32, kPassDigits = unsigned(kSortDigitsOfPass);

/// One pass: the digit of a key is `key >> shift & mask`.
template <class Key>
struct Pass {
  const Key* keys;
  const Key* values;  // null at first: pair i has value i
  Key* keys_out;
  Key* values_out;
  Key* counts;  // [tile][digit], then a total for each digit
  int64_t n;
  int shift;
  unsigned mask;
  VESTA_DEVICE unsigned digit(Key key) const { return unsigned(key >> shift) & mask; }
};

/// Counts a tile's digits.
template <class Key, unsigned items>
VESTA_KERNEL void count_digits_kernel(Pass<Key> p) {
  constexpr unsigned N = 16 / sizeof(Key);
  VESTA_SHARED(unsigned, bins, kPassDigits);
  const unsigned t = threadIdx.x;
  if (t < kPassDigits) bins[t] = 0;
  block_barrier();
  const int64_t begin = int64_t(blockIdx.x) * kPassThreads * items;
  if (begin + kPassThreads * items <= p.n) {
    Elements<Key, N> pack[items / N];
    VESTA_UNROLL
    for (unsigned u = 0; u < items / N; ++u)
      pack[u] = *reinterpret_cast<const Elements<Key, N>*>(p.keys + begin + (u * kPassThreads + t) * N);
    VESTA_UNROLL
    for (unsigned u = 0; u < items / N; ++u) {
      VESTA_UNROLL
      for (unsigned j = 0; j < N; ++j) atomic_add(&bins[p.digit(pack[u].v[j])], 1u);
    }
  } else {
    for (int64_t i = begin + t; i < p.n; i += kPassThreads) atomic_add(&bins[p.digit(p.keys[i])], 1u);
  }
  block_barrier();
  if (t < kPassDigits) p.counts[uint64_t(blockIdx.x) * kPassDigits + t] = Key(bins[t]);
}

constexpr unsigned kColumnThreads = 1024, kColumns = 32, kColumnRows = kColumnThreads / kColumns;

/// Makes of each digit's counts their running sum over the tiles, and writes the digit's total. A block has 32 digits;
/// each of its warps a run of tiles.
template <class Key>
VESTA_KERNEL void sum_counts_kernel(Key* counts, unsigned tiles) {
  constexpr unsigned kAhead = 8;
  VESTA_SHARED(Key, sums, kColumnThreads);
  const unsigned column = threadIdx.x % kColumns, row = threadIdx.x / kColumns;
  const unsigned share = (tiles + kColumnRows - 1) / kColumnRows, begin = row * share;
  const unsigned end = begin + share < tiles ? begin + share : tiles;
  Key* const at = counts + blockIdx.x * kColumns + column;
  Key sum = 0;
  for (unsigned first = begin; first < end; first += kAhead) {
    Key v[kAhead];
    VESTA_UNROLL
    for (unsigned k = 0; k < kAhead; ++k) v[k] = first + k < end ? at[uint64_t(first + k) * kPassDigits] : Key(0);
    VESTA_UNROLL
    for (unsigned k = 0; k < kAhead; ++k) sum += v[k];
  }
  sums[threadIdx.x] = sum;
  block_barrier();
  Key before = 0;
  for (unsigned r = 0; r < row; ++r) before += sums[r * kColumns + column];
  if (row + 1 == kColumnRows) at[uint64_t(tiles) * kPassDigits] = before + sum;
  for (unsigned first = begin; first < end; first += kAhead) {
    Key v[kAhead];
    VESTA_UNROLL
    for (unsigned k = 0; k < kAhead; ++k) v[k] = first + k < end ? at[uint64_t(first + k) * kPassDigits] : Key(0);
    VESTA_UNROLL
    for (unsigned k = 0; k < kAhead; ++k) {
      if (first + k < end) at[uint64_t(first + k) * kPassDigits] = before;
      before += v[k];
    }
  }
}

/// Moves a tile's pairs to their places in the order of one digit. A warp has 32 * items pairs in a row, a lane every
/// 32nd of them. Lanes with the same digit find each other by votes, so that a warp counts its digits in order.
template <class Key, unsigned items>
VESTA_KERNEL void VESTA_BOUNDS(kPassThreads, 2) move_pairs_kernel(Pass<Key> p) {
  constexpr unsigned kTile = kPassThreads * items;
  VESTA_SHARED(Key, staged, kTile);
  VESTA_SHARED(uint16_t, table, kPassWarps* kPassDigits);  // [warp][digit]
  VESTA_SHARED(Key, base, kPassDigits);  // where a digit's pairs go, less their place in the tile
  const unsigned t = threadIdx.x, lane = lane_index();
  const int64_t tile = int64_t(blockIdx.x) * kTile;
  const unsigned filled = p.n - tile < int64_t(kTile) ? unsigned(p.n - tile) : kTile;
  const unsigned own = warp_index() * 32 * items + lane;
  uint16_t* const mine = table + warp_index() * kPassDigits;
  Key key[items];
  unsigned place[items / 2] = {};  // in the tile, two to a register
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = own + k * 32;
    key[k] = i < filled ? p.keys[tile + i] : Key(~Key(0));  // beyond the end: the last of the last digit
  }
  for (unsigned d = lane; d < kPassDigits; d += 32) mine[d] = 0;
  warp_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned d = p.digit(key[k]), equal = match_digits<8>(d), lower = count_bits(equal & ((1u << lane) - 1));
    const unsigned before = mine[d];
    warp_barrier();
    if (lower == 0) mine[d] = uint16_t(before + count_bits(equal));
    warp_barrier();
    place[k / 2] |= (before + lower) << k % 2 * 16;
  }
  block_barrier();
  unsigned here = 0, total;
  if (t < kPassDigits) {
    for (unsigned w = 0; w < kPassWarps; ++w) {
      const unsigned count = table[w * kPassDigits + t];
      table[w * kPassDigits + t] = uint16_t(here);
      here += count;
    }
  }
  const unsigned first = block_sum_before<kPassThreads>(here, total);
  Key all;
  const Key* const totals = p.counts + uint64_t(gridDim.x) * kPassDigits;
  const Key digits = block_sum_before<kPassThreads>(t < kPassDigits ? totals[t] : Key(0), all);
  if (t < kPassDigits) {
    base[t] = Key(digits + p.counts[uint64_t(blockIdx.x) * kPassDigits + t] - first);
    for (unsigned w = 0; w < kPassWarps; ++w) table[w * kPassDigits + t] = uint16_t(table[w * kPassDigits + t] + first);
  }
  block_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    place[k / 2] += unsigned(mine[p.digit(key[k])]) << k % 2 * 16;
    staged[place[k / 2] >> k % 2 * 16 & 0xffff] = key[k];
  }
  block_barrier();
  unsigned digits_moved[items / 4] = {};
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {  // runs of equal digits are written together
    const unsigned i = k * kPassThreads + t;
    const Key moved = staged[i];
    const unsigned d = p.digit(moved);
    digits_moved[k / 4] |= d << k % 4 * 8;
    if (i < filled) p.keys_out[Key(base[d] + i)] = moved;
  }
  block_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = own + k * 32;
    staged[place[k / 2] >> k % 2 * 16 & 0xffff] = p.values && i < filled ? p.values[tile + i] : Key(tile + i);
  }
  block_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = k * kPassThreads + t;
    const unsigned d = digits_moved[k / 4] >> k % 4 * 8 & 255;
    if (i < filled) p.values_out[Key(base[d] + i)] = staged[i];
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

template <class Key, unsigned items>
void run_pass(const Pass<Key>& p, StreamHandle stream) {
  const uint64_t tiles = (uint64_t(p.n) + kPassThreads * items - 1) / (kPassThreads * items);
  const LaunchShape shape = linear_shape(tiles * kPassThreads, kPassThreads, stream);
  launch_block("sort_count", count_digits_kernel<Key, items>, shape, p);
  launch_block("sort_sum", sum_counts_kernel<Key>,
               linear_shape(kPassDigits / kColumns * kColumnThreads, kColumnThreads, stream), p.counts,
               unsigned(tiles));
  launch_block("sort_move", move_pairs_kernel<Key, items>, shape, p);
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
  const int passes = (l.bits + 7) / 8;
  int from = 0;
  for (int k = 0; k < passes; ++k, from ^= 1) {
    const int shift = l.bits * k / passes, end = l.bits * (k + 1) / passes;
    const Pass<Key> p{keys[from],
                      k == 0 ? nullptr : values[from],
                      keys[from ^ 1],
                      values[from ^ 1],
                      reinterpret_cast<Key*>(l.counts),
                      l.n,
                      shift,
                      (1u << (end - shift)) - 1};
    if (sort_tile_of(l.n, l.wide) == kPassThreads * 4) run_pass<Key, 4>(p, l.stream);
    else run_pass<Key, sizeof(Key) == 8 ? 8 : 16>(p, l.stream);
  }
  return from;
}

}  // namespace

int run_sort(const SortLaunch& l) { return l.wide ? sort_array<uint64_t>(l) : sort_array<uint32_t>(l); }

void run_running_sum(uint64_t* data, int64_t n, StreamHandle stream) {
  launch_block("running_sum", running_sum_kernel, linear_shape(1, kSumThreads, stream), data, n);
}

}  // namespace vesta::cuda
