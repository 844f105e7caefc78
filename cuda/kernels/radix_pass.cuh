// One pass of a large radix sort (radix_sort.cu). What is sorted, and where it goes, are parameters: a sort's first
// pass may read elements and its last may write them.
#pragma once
#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/radix_sort.h>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {

constexpr unsigned kPassThreads = 512, kPassWarps = kPassThreads / 32, kPassDigits = unsigned(kSortDigitsOfPass);

/// One pass: the digit of a key is `key >> shift & mask`.
template <class Key>
struct Pass {
  Key* counts;  // [tile][digit], then a total for each digit
  int64_t n;
  int shift;
  unsigned mask;
  unsigned* skipped;  // SortLaunch::skipped
  unsigned number;
  bool may_skip;  // does nothing where all digits are equal
  VESTA_DEVICE unsigned digit(Key key) const { return unsigned(key >> shift) & mask; }
  /// Returns which of two buffers the pairs are in.
  VESTA_DEVICE unsigned buffer() const {
    unsigned moves = number;
    for (unsigned k = 0; skipped && k < number; ++k) moves -= skipped[k];
    return moves % 2;
  }
};

/// The arrays of a sort's pairs.
template <class Key>
struct Pairs {
  Key* keys;
  Key* values;
};
template <class Key>
struct PairBuffers {
  Pairs<Key> first, second;
  VESTA_DEVICE Key* keys(bool other) const { return other ? second.keys : first.keys; }
  VESTA_DEVICE Key* values(bool other) const { return other ? second.values : first.values; }
  explicit PairBuffers(const SortLaunch& l)
      : first{static_cast<Key*>(l.keys[0]), static_cast<Key*>(l.values[0])},
        second{static_cast<Key*>(l.keys[1]), static_cast<Key*>(l.values[1])} {}
};

/// The source of a pass, read N keys at a time for the counts: the buffer that the pass before it has filled.
template <class Key>
struct PairsIn {
  static constexpr unsigned N = 16 / sizeof(Key);
  using Pack = Elements<Key, N>;
  PairBuffers<Key> buffers;
  bool numbered;  // pair i has value i
  bool second = false;
  VESTA_DEVICE void use(unsigned buffer) { second = buffer != 0; }
  VESTA_DEVICE bool aligned() const { return true; }
  VESTA_DEVICE Pack pack(int64_t i) const { return *reinterpret_cast<const Pack*>(buffers.keys(second) + i); }
  VESTA_DEVICE Key key_of(Key key) const { return key; }
  VESTA_DEVICE Key key(Key i) const { return buffers.keys(second)[i]; }
  VESTA_DEVICE Key value(Key i) const { return numbered ? i : buffers.values(second)[i]; }
};
/// The target of a pass: keys first, then values. write_key() returns whether the value is needed to write the key's
/// part.
template <class Key>
struct PairsOut {
  PairBuffers<Key> buffers;
  bool second = false;
  VESTA_DEVICE void leave(unsigned buffer) { second = buffer == 0; }
  VESTA_DEVICE bool write_key(Key to, Key key) const {
    buffers.keys(second)[to] = key;
    return false;
  }
  VESTA_DEVICE void write_value(Key to, Key value, bool) const { buffers.values(second)[to] = value; }
};

/// Counts a tile's digits.
template <class Key, unsigned items, class In>
VESTA_KERNEL void count_digits_kernel(Pass<Key> p, In in) {
  constexpr unsigned N = In::N;
  VESTA_SHARED(unsigned, bins, kPassDigits);
  const unsigned t = threadIdx.x;
  if (t < kPassDigits) bins[t] = 0;
  if (p.skipped && global_index() == 0) p.skipped[p.number] = 0;
  in.use(p.buffer());
  block_barrier();
  const int64_t begin = int64_t(blockIdx.x) * kPassThreads * items;
  const int64_t end = begin + kPassThreads * items < p.n ? begin + kPassThreads * items : p.n;
  if (end - begin == kPassThreads * items && in.aligned()) {
    typename In::Pack pack[items / N];
    VESTA_UNROLL
    for (unsigned u = 0; u < items / N; ++u) pack[u] = in.pack(begin + (u * kPassThreads + t) * N);
    VESTA_UNROLL
    for (unsigned u = 0; u < items / N; ++u) {
      VESTA_UNROLL
      for (unsigned j = 0; j < N; ++j) atomic_add(&bins[p.digit(in.key_of(pack[u].v[j]))], 1u);
    }
  } else {
    for (int64_t i = begin + t; i < end; i += kPassThreads) atomic_add(&bins[p.digit(in.key(Key(i)))], 1u);
  }
  block_barrier();
  if (t < kPassDigits) p.counts[uint64_t(blockIdx.x) * kPassDigits + t] = Key(bins[t]);
}

constexpr unsigned kColumnThreads = 1024, kColumns = 32, kColumnRows = kColumnThreads / kColumns;

/// Replaces each digit's counts by their running sum over the tiles, and writes its total. A block has 32 digits,
/// each of its warps a run of tiles.
template <class Key>
VESTA_KERNEL void sum_counts_kernel(Pass<Key> p, unsigned tiles) {
  constexpr unsigned kAhead = 8;
  VESTA_SHARED(Key, sums, kColumnThreads);
  const unsigned column = threadIdx.x % kColumns, row = threadIdx.x / kColumns;
  const unsigned share = (tiles + kColumnRows - 1) / kColumnRows, begin = row * share;
  const unsigned end = begin + share < tiles ? begin + share : tiles;
  Key* const at = p.counts + blockIdx.x * kColumns + column;
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
  if (row + 1 == kColumnRows) {
    at[uint64_t(tiles) * kPassDigits] = before + sum;
    if (p.skipped && p.may_skip && int64_t(before + sum) == p.n) p.skipped[p.number] = 1;
  }
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
template <class Key, unsigned items, class In, class Out>
VESTA_KERNEL void VESTA_BOUNDS(kPassThreads, 2) move_pairs_kernel(Pass<Key> p, In in, Out out) {
  constexpr unsigned kTile = kPassThreads * items;
  VESTA_SHARED(Key, staged, kTile);
  VESTA_SHARED(uint16_t, table, kPassWarps* kPassDigits);  // [warp][digit]
  VESTA_SHARED(Key, base, kPassDigits);  // where a digit's pairs go, less their place in the tile
  if (p.skipped && p.skipped[p.number] != 0) return;
  in.use(p.buffer());
  const unsigned t = threadIdx.x, lane = lane_index();
  const Key tile = Key(blockIdx.x) * kTile;
  const unsigned filled = p.n - int64_t(tile) < int64_t(kTile) ? unsigned(p.n - int64_t(tile)) : kTile;
  const unsigned own = warp_index() * 32 * items + lane;
  uint16_t* const mine = table + warp_index() * kPassDigits;
  Key key[items];
  unsigned place[items / 2] = {};  // in the tile, two to a register
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = own + k * 32;
    key[k] = i < filled ? in.key(tile + i) : Key(~Key(0));  // beyond the end: the last of the last digit
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
  out.leave(p.buffer());
  unsigned digits_moved[items / 4] = {}, waits = 0;
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {  // runs of equal digits are written together
    const unsigned i = k * kPassThreads + t;
    const Key moved = staged[i];
    const unsigned d = p.digit(moved);
    digits_moved[k / 4] |= d << k % 4 * 8;
    if (i < filled && out.write_key(Key(base[d] + i), moved)) waits |= 1u << k;
  }
  block_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = own + k * 32;
    staged[place[k / 2] >> k % 2 * 16 & 0xffff] = i < filled ? in.value(tile + i) : Key(0);
  }
  block_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < items; ++k) {
    const unsigned i = k * kPassThreads + t;
    const unsigned d = digits_moved[k / 4] >> k % 4 * 8 & 255;
    if (i < filled) out.write_value(Key(base[d] + i), staged[i], waits >> k & 1);
  }
}

template <class Key, unsigned items, class In, class Out>
void run_pass_of(const Pass<Key>& p, const In& in, const Out& out, StreamHandle stream) {
  const uint64_t tiles = (uint64_t(p.n) + kPassThreads * items - 1) / (kPassThreads * items);
  const LaunchShape shape = linear_shape(tiles * kPassThreads, kPassThreads, stream);
  launch_block("sort_count", count_digits_kernel<Key, items, In>, shape, p, in);
  launch_block("sort_sum", sum_counts_kernel<Key>,
               linear_shape(kPassDigits / kColumns * kColumnThreads, kColumnThreads, stream), p, unsigned(tiles));
  launch_block("sort_move", move_pairs_kernel<Key, items, In, Out>, shape, p, in, out);
}

/// Queues pass number k of a sort.
template <class Key, class In, class Out>
void run_pass(const SortLaunch& l, int k, const In& in, const Out& out) {
  const int passes = sort_pass_count(l.bits), shift = l.bits * k / passes, end = l.bits * (k + 1) / passes;
  constexpr bool moves_pairs = std::is_same_v<In, PairsIn<Key>> && std::is_same_v<Out, PairsOut<Key>>;
  const Pass<Key> p{
      reinterpret_cast<Key*>(l.counts), l.n, shift, (1u << (end - shift)) - 1, l.skipped, unsigned(k), moves_pairs};
  if (sort_tile_of(l.n, l.wide) == kPassThreads * 4) run_pass_of<Key, 4>(p, in, out, l.stream);
  else run_pass_of<Key, sizeof(Key) == 8 ? 8 : 16>(p, in, out, l.stream);
}

}  // namespace vesta::cuda
