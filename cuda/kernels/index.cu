#include <vesta/cuda/kernels/index.h>

#include <cstring>

#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/items.cuh>
#include <vesta/cuda/kernels/places.cuh>
#include <vesta/cuda/kernels/radix_sort.h>
#include <vesta/cuda/kernels/teams.cuh>
#include <vesta/cuda/kernels/walk.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// The arguments of the kernels of Moves besides the walk and the positions.
struct MoveEnds {
  char* self;
  char* other;
  uint64_t total;
  int marked;
};
template <class Index>
struct Sorted {
  const Index* keys;
  const Index* order;
  Index count;
  int64_t unit, step;  // bytes: of a key in self, of a position in other
  Index bad_key;
};

constexpr unsigned kTaken = 4;  // units that a thread takes: their positions are read first, then they

template <class T, class Index>
VESTA_KERNEL void take_kernel(Walk<Index, 2> walk, MoveEnds m, Places places) {
  const Index first = Index(blockIdx.x) * (kThreads * kTaken) + threadIdx.x;
  const char* from[kTaken];
  char* to[kTaken];
  VESTA_UNROLL
  for (unsigned u = 0; u < kTaken; ++u) {
    const Index i = first + u * kThreads;
    from[u] = to[u] = nullptr;
    if (i >= m.total) continue;
    int64_t offset[2];
    const Index j = walk.offsets(i, offset, m.marked);
    const int64_t place = place_of(places, j);
    to[u] = m.other + offset[1];
    if (place != kBadPlace) from[u] = m.self + offset[0] + place;
  }
  T v[kTaken];
  VESTA_UNROLL
  for (unsigned u = 0; u < kTaken; ++u) {
    v[u] = T{};
    if (from[u]) v[u] = *reinterpret_cast<const T*>(from[u]);
  }
  VESTA_UNROLL
  for (unsigned u = 0; u < kTaken; ++u) {
    if (to[u]) *reinterpret_cast<T*>(to[u]) = v[u];
  }
}

template <class Index>
VESTA_KERNEL void keys_kernel(Places places, Index count, int64_t unit, Index bad_key, Index* keys) {
  const Index j = thread_number<Index>();
  if (j >= count) return;
  const int64_t place = place_of(places, j);
  keys[j] = place == kBadPlace ? bad_key : Index(place / unit);
}

template <class T, class Index>
VESTA_KERNEL void put_kernel(Walk<Index, 2> walk, MoveEnds m, Sorted<Index> sorted) {
  const Index i = thread_number<Index>();
  if (i >= m.total) return;
  int64_t offset[2];
  const Index s = walk.offsets(i, offset, m.marked), key = sorted.keys[s];
  if (key == sorted.bad_key || (s + 1 < sorted.count && sorted.keys[s + 1] == key)) return;
  const char* from = m.other + offset[1];
  if (sorted.order) from += (int64_t(sorted.order[s]) - int64_t(s)) * sorted.step;
  *reinterpret_cast<T*>(m.self + offset[0] + int64_t(key) * sorted.unit) = *reinterpret_cast<const T*>(from);
}

template <class T, class Index>
VESTA_KERNEL void gather_kernel(Walk<Index, 3> walk, ElementMoves m) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  int64_t offset[3];
  walk.offsets(i, offset);
  const int64_t at = *reinterpret_cast<const int64_t*>(m.index + offset[1]);
  T v{};
  if (uint64_t(at) < uint64_t(m.size)) v = *reinterpret_cast<const T*>(m.self + offset[0] + at * m.stride);
  else report(m.fault, FaultKind::element_index, m.name, at, m.size, m.dim);
  *reinterpret_cast<T*>(m.other + offset[2]) = v;
}

/// Gathers four elements of a line at a time, whose indices and positions in the result lie side by side.
template <class T, class Index>
VESTA_KERNEL void gather_four_kernel(Walk<Index, 3> walk, ElementMoves m, int64_t self_step) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  int64_t offset[3];
  walk.offsets(i, offset);
  Elements<int64_t, 2> at[2];
  Elements<T, 4> v{};
  VESTA_UNROLL
  for (int u = 0; u < 2; ++u) at[u] = reinterpret_cast<const Elements<int64_t, 2>*>(m.index + offset[1])[u];
  VESTA_UNROLL
  for (int u = 0; u < 4; ++u) {
    const int64_t given = at[u / 2].v[u % 2];
    const bool good = uint64_t(given) < uint64_t(m.size);
    if (good) v.v[u] = *reinterpret_cast<const T*>(m.self + offset[0] + u * self_step + given * m.stride);
    else report(m.fault, FaultKind::element_index, m.name, given, m.size, m.dim);
  }
  *reinterpret_cast<Elements<T, 4>*>(m.other + offset[2]) = v;
}

template <class Index>
VESTA_KERNEL void scatter_keys_kernel(Walk<Index, 3> walk, ElementMoves m, Index* keys) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  int64_t offset[3];
  walk.offsets(i, offset);
  const int64_t at = *reinterpret_cast<const int64_t*>(m.index + offset[1]);
  const bool good = uint64_t(at) < uint64_t(m.size);
  if (!good) report(m.fault, FaultKind::element_index, m.name, at, m.size, m.dim);
  keys[i] = good ? Index((offset[0] + at * m.stride) / m.unit) : Index(m.bad_key);
}

constexpr unsigned kPerThread = unsigned(kNonzeroTile) / kThreads;

/// Returns a thread's eight elements of the mask in a row, a bit each; those beyond the end are false.
VESTA_DEVICE unsigned own_mask(const uint8_t* mask, int64_t begin, int64_t n) {
  unsigned bits = 0;
  if (begin + kPerThread <= n && reinterpret_cast<uintptr_t>(mask) % 8 == 0) {
    const uint64_t word = *reinterpret_cast<const uint64_t*>(mask + begin);
    VESTA_UNROLL
    for (unsigned k = 0; k < kPerThread; ++k) bits |= unsigned((word >> 8 * k & 255) != 0) << k;
  } else {
    for (unsigned k = 0; k < kPerThread; ++k) bits |= unsigned(begin + k < n && mask[begin + k]) << k;
  }
  return bits;
}

/// Counts the bytes of a word that are not 0.
VESTA_DEVICE unsigned count_bytes(uint32_t word) {
  return count_bits((((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u);
}

/// Counts a group of tiles. A warp has some of them, and loads all of these before it counts.
VESTA_KERNEL void nonzero_count_kernel(NonzeroLaunch l) {
  constexpr unsigned kTiles = unsigned(kNonzeroGroup) / (kThreads / 32);
  constexpr unsigned kBytes = sizeof(Elements<uint32_t, 4>), kPacks = unsigned(kNonzeroTile) / (32 * kBytes);
  VESTA_SHARED(unsigned, totals, kNonzeroGroup);
  const unsigned first = warp_index() * kTiles, lane = lane_index();
  const int64_t begin = (int64_t(blockIdx.x) * kNonzeroGroup + first) * kNonzeroTile;
  unsigned counts[kTiles] = {};
  if (begin + int64_t(kTiles) * kNonzeroTile <= l.n && reinterpret_cast<uintptr_t>(l.mask) % kBytes == 0) {
    Elements<uint32_t, 4> packs[kTiles][kPacks];
    VESTA_UNROLL
    for (unsigned k = 0; k < kTiles * kPacks; ++k) {
      packs[k / kPacks][k % kPacks] =
          *reinterpret_cast<const Elements<uint32_t, 4>*>(l.mask + begin + (k * 32 + lane) * kBytes);
    }
    VESTA_UNROLL
    for (unsigned k = 0; k < kTiles * kPacks * 4; ++k) {
      counts[k / (kPacks * 4)] += count_bytes(packs[k / (kPacks * 4)][k / 4 % kPacks].v[k % 4]);
    }
  } else {
    for (unsigned t = 0; t < kTiles; ++t) {
      for (int64_t i = begin + t * kNonzeroTile + lane, end = begin + (t + 1) * kNonzeroTile; i < end && i < l.n;
           i += 32)
        counts[t] += l.mask[i] != 0;
    }
  }
  VESTA_UNROLL
  for (unsigned t = 0; t < kTiles; ++t) {
    const unsigned total = warp_reduce(counts[t], [](unsigned a, unsigned b) { return a + b; });
    if (lane == 0) totals[first + t] = total;
  }
  block_barrier();
  if (threadIdx.x > kNonzeroGroup) return;
  uint64_t before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += totals[t];
  const int64_t tile = int64_t(blockIdx.x) * kNonzeroGroup + threadIdx.x;
  if (threadIdx.x == kNonzeroGroup) l.groups[blockIdx.x] = before;
  else if (tile < nonzero_tiles(l.n)) l.counts[tile] = before;
}

/// Returns how many true elements lie before the block's tile.
VESTA_DEVICE uint64_t nonzero_before(const NonzeroLaunch& l) {
  return l.groups[blockIdx.x / unsigned(kNonzeroGroup)] + l.counts[blockIdx.x];
}

/// A mask's dimensions, ready to divide by.
struct MaskSizes {
  Divider size[64];
};

VESTA_KERNEL void nonzero_write_kernel(NonzeroLaunch l, MaskSizes sizes) {
  const int64_t begin = int64_t(blockIdx.x) * kNonzeroTile + threadIdx.x * kPerThread;
  unsigned total;
  const unsigned mask = own_mask(l.mask, begin, l.n);
  uint64_t at = nonzero_before(l) + block_sum_before<kThreads>(count_bits(mask), total);
  for (unsigned k = 0; k < kPerThread; ++k) {
    if ((mask >> k & 1) == 0) continue;
    const int64_t i = begin + k;
    int64_t rest = i;
    for (int d = l.ndim - 1; d >= 0; --d) {
      const Divider& size = sizes.size[d];
      const int64_t next = d > 0 ? size.divide(rest) : 0;
      l.out[uint64_t(d) * uint64_t(l.total) + at] = rest - next * size.divisor;
      rest = next;
    }
    ++at;
  }
}

/// Moves the elements where the mask is true, gathered in shared memory, to their positions in a row.
template <class T>
VESTA_KERNEL void masked_take_kernel(NonzeroLaunch l, const T* from, T* to) {
  constexpr unsigned N = sizeof(T) >= 16 ? 1 : 16 / sizeof(T) < kPerThread ? 16 / sizeof(T) : kPerThread;
  VESTA_SHARED(T, staged, kNonzeroTile);
  const int64_t begin = int64_t(blockIdx.x) * kNonzeroTile + threadIdx.x * kPerThread;
  const unsigned mask = own_mask(l.mask, begin, l.n);
  T v[kPerThread];
  if (mask != 0 && begin + kPerThread <= l.n && reinterpret_cast<uintptr_t>(from) % sizeof(Elements<T, N>) == 0) {
    VESTA_UNROLL
    for (unsigned u = 0; u < kPerThread; u += N) {
      const auto pack = *reinterpret_cast<const Elements<T, N>*>(from + begin + u);
      VESTA_UNROLL
      for (unsigned j = 0; j < N; ++j) v[u + j] = pack.v[j];
    }
  } else {
    VESTA_UNROLL
    for (unsigned k = 0; k < kPerThread; ++k) {
      if (mask >> k & 1) v[k] = from[begin + k];
    }
  }
  unsigned total, at = block_sum_before<kThreads>(count_bits(mask), total);
  VESTA_UNROLL
  for (unsigned k = 0; k < kPerThread; ++k) {
    if (mask >> k & 1) staged[at++] = v[k];
  }
  block_barrier();
  T* const out = to + nonzero_before(l);
  for (unsigned i = threadIdx.x; i < total; i += kThreads) out[i] = staged[i];
}

/// Calls f with a value of the type of element numbers.
template <class F>
void visit_index(bool wide, F f) {
  if (wide) f(uint64_t());
  else f(uint32_t());
}

/// Makes a walk's steps four elements of index and result, if they lie side by side and aligned.
bool in_fours(ElementMoves& m, int64_t item) {
  WalkDims& w = m.walk;
  if (w.ndim == 0 || w.sizes[0] % 4 != 0 || w.strides[1][0] != 8 || w.strides[2][0] != item) return false;
  const int64_t unit = item * 4 < 16 ? item * 4 : 16;
  if (reinterpret_cast<uintptr_t>(m.index) % 16 != 0 || reinterpret_cast<uintptr_t>(m.other) % unit != 0) return false;
  for (int d = 1; d < w.ndim; ++d) {
    if (w.strides[1][d] % 16 != 0 || w.strides[2][d] % unit != 0) return false;
  }
  w.sizes[0] /= 4, m.total /= 4;
  for (auto& strides : w.strides) strides[0] *= 4;
  return true;
}

template <class Index>
Sorted<Index> sorted_of(const Moves& m) {
  return {static_cast<const Index*>(m.keys),
          static_cast<const Index*>(m.order),
          Index(m.count),
          m.unit,
          m.walk.strides[1][m.marked],
          Index(m.bad_key)};
}

}  // namespace

void run_take(const Moves& m, int64_t item) {
  const MoveEnds ends{m.self, m.other, uint64_t(m.total), m.marked};
  visit_item(item, [&]<class T>(T) {
    visit_index(m.wide, [&]<class Index>(Index) {
      launch_independent(m.name, take_kernel<T, Index>,
                         linear_shape((uint64_t(m.total) + kTaken - 1) / kTaken, kThreads, m.stream),
                         Walk<Index, 2>(m.walk), ends, m.places);
    });
  });
}

void run_put(const Moves& m, int64_t item) {
  const MoveEnds ends{m.self, m.other, uint64_t(m.total), m.marked};
  visit_item(item, [&]<class T>(T) {
    visit_index(m.wide, [&]<class Index>(Index) {
      launch_independent(m.name, put_kernel<T, Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                         Walk<Index, 2>(m.walk), ends, sorted_of<Index>(m));
    });
  });
}

void run_keys(const Moves& m, void* keys) {
  visit_index(m.wide, [&]<class Index>(Index) {
    launch_independent("index_keys", keys_kernel<Index>, linear_shape(uint64_t(m.count), kThreads, m.stream), m.places,
                       Index(m.count), m.unit, Index(m.bad_key), static_cast<Index*>(keys));
  });
}

void run_gather(const ElementMoves& m, int64_t item) {
  ElementMoves four = m;
  const int64_t self_step = m.walk.ndim ? m.walk.strides[0][0] : 0;
  const bool fours = in_fours(four, item);
  visit_item(item, [&]<class T>(T) {
    visit_index(m.wide, [&]<class Index>(Index) {
      if (fours) {
        launch_independent(m.name, gather_four_kernel<T, Index>, linear_shape(uint64_t(four.total), kThreads, m.stream),
                           Walk<Index, 3>(four.walk), four, self_step);
        return;
      }
      launch_independent(m.name, gather_kernel<T, Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                         Walk<Index, 3>(m.walk), m);
    });
  });
}

void run_scatter_keys(const ElementMoves& m, void* keys) {
  visit_index(m.wide, [&]<class Index>(Index) {
    launch_independent("scatter_keys", scatter_keys_kernel<Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                       Walk<Index, 3>(m.walk), m, static_cast<Index*>(keys));
  });
}

void run_nonzero_count(const NonzeroLaunch& l) {
  const int64_t groups = nonzero_groups(l.n);
  launch_block("nonzero_count", nonzero_count_kernel, linear_shape(uint64_t(groups) * kThreads, kThreads, l.stream), l);
  run_running_sum(l.groups, groups, l.stream);
}

void run_nonzero_write(const NonzeroLaunch& l) {
  MaskSizes sizes;
  for (int d = 0; d < l.ndim; ++d) sizes.size[d] = Divider(l.sizes[d]);
  launch_block("nonzero_write", nonzero_write_kernel,
               linear_shape(uint64_t(nonzero_tiles(l.n)) * kThreads, kThreads, l.stream), l, sizes);
}

void run_masked_take(const NonzeroLaunch& l, const void* from, void* to, int64_t item) {
  visit_item(item, [&]<class T>(T) {
    launch_block("masked_select", masked_take_kernel<T>,
                 linear_shape(uint64_t(nonzero_tiles(l.n)) * kThreads, kThreads, l.stream), l,
                 static_cast<const T*>(from), static_cast<T*>(to));
  });
}

}  // namespace vesta::cuda
