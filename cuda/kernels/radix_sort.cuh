// The part of a radix sort that happens within a block: a tile of pairs is ordered in shared memory.
#pragma once
#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/radix_sort.h>

namespace vesta::cuda {

inline constexpr unsigned kSortThreads = 256, kSortItems = 8, kSortDigits = 16, kSortDigitBits = 4;
static_assert(kSortThreads * kSortItems == kSortTile);

template <class Key>
VESTA_DEVICE unsigned digit_of(Key key, int shift) {
  return unsigned(key >> shift) & (kSortDigits - 1);
}

/// Finds the ranks of a thread's eight pairs within their tile, ordered by one digit. `first[d]` gets the first rank
/// of digit d.
template <class Key>
VESTA_DEVICE void rank(const Key (&key)[kSortItems], unsigned count, int shift, unsigned (&place)[kSortItems],
                       unsigned* first) {
  VESTA_SHARED(uint16_t, table, kSortDigits* kSortThreads);  // [digit][thread]
  const unsigned t = threadIdx.x;
  for (unsigned d = 0; d < kSortDigits; ++d) table[d * kSortThreads + t] = 0;
#pragma unroll
  for (unsigned k = 0; k < kSortItems; ++k) {
    if (k < count) ++table[digit_of(key[k], shift) * kSortThreads + t];
  }
  block_barrier();
  unsigned sum = 0, total;
  for (unsigned k = 0; k < kSortDigits; ++k) sum += table[t * kSortDigits + k];
  unsigned before = block_sum_before<kSortThreads>(sum, total);
  for (unsigned k = 0; k < kSortDigits; ++k) {
    const unsigned here = table[t * kSortDigits + k];
    table[t * kSortDigits + k] = uint16_t(before);
    before += here;
  }
  block_barrier();
  if (t < kSortDigits) first[t] = table[t * kSortThreads];
  block_barrier();
#pragma unroll
  for (unsigned k = 0; k < kSortItems; ++k) {
    if (k < count) place[k] = table[digit_of(key[k], shift) * kSortThreads + t]++;
  }
}

/// Orders a tile's pairs by the lowest `bits` of their keys; equal keys keep their order. A thread has `count` pairs,
/// eight but for the last ones of the tile. Works in shared memory for kSortTile keys and as many values.
template <class Key, class Value>
VESTA_DEVICE void sort_tile(Key (&key)[kSortItems], Value (&value)[kSortItems], unsigned count, int bits,
                            Key* tile_keys, Value* tile_values) {
  VESTA_SHARED(unsigned, first, kSortDigits);
  const unsigned begin = threadIdx.x * kSortItems;
  unsigned place[kSortItems];
  for (int shift = 0; shift < bits; shift += kSortDigitBits) {
    rank(key, count, shift, place, first);
#pragma unroll
    for (unsigned k = 0; k < kSortItems; ++k) {
      if (k < count) tile_keys[place[k]] = key[k], tile_values[place[k]] = value[k];
    }
    block_barrier();
#pragma unroll
    for (unsigned k = 0; k < kSortItems; ++k) {
      if (k < count) key[k] = tile_keys[begin + k], value[k] = tile_values[begin + k];
    }
    block_barrier();
  }
}

}  // namespace vesta::cuda
