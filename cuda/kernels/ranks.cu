// The first elements of lines in order, without a sort of the rest. A tour: a block keeps the best elements so far in
// shared memory and knows the key of the last of them, the threshold. Elements pass by 16 bytes at a time; only those
// before the threshold join the kept ones, and when these have become many, they are sorted and the threshold falls.
// So a line is read once, and of n elements in any order but a bad one some count * ln(n / 256) are kept. Entries are
// ordered by key and index, all different: neither the order in which threads append nor the pieces matter.
#include <vesta/cuda/kernels/ranks.h>

#include <vesta/core/ops/sort_key.h>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// The entries that a block keeps.
template <class Key>
struct Kept {
  static constexpr unsigned kRoom = sizeof(Key) == 8 ? 2048 : 4096;
  Key* keys;
  unsigned* places;

  VESTA_DEVICE void swap_if(unsigned a, unsigned b, bool ascending) const {
    const Key p = keys[a], q = keys[b];
    const unsigned i = places[a], j = places[b];
    if ((p < q || (p == q && i < j)) == ascending) return;
    keys[a] = q, keys[b] = p;
    places[a] = j, places[b] = i;
  }
  /// Sorts the first n entries; all threads take part (a bitonic sort: Batcher, "Sorting networks and their
  /// applications", 1968).
  VESTA_DEVICE void sort(unsigned n) const {
    unsigned all = 2;
    while (all < n) all *= 2;
    for (unsigned i = n + threadIdx.x; i < all; i += kThreads) keys[i] = Key(~Key(0)), places[i] = ~0u;
    for (unsigned run = 2; run <= all; run *= 2) {
      for (unsigned step = run / 2; step > 0; step /= 2) {
        block_barrier();
        for (unsigned i = threadIdx.x; i < all / 2; i += kThreads) {
          const unsigned a = 2 * i - (i & (step - 1));
          swap_if(a, a + step, (a & run) == 0);
        }
      }
    }
    block_barrier();
  }
};

/// A block's elements: those of a piece, or chosen ones.
template <class T, bool chosen>
struct Candidates {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const T* line;
  const int64_t* places;
  int64_t first;  // the index of element 0 in its line
  bool largest;

  VESTA_DEVICE Key key(T v) const {
    const SortKey<T> k = sort_key(v);
    return largest ? SortKey<T>(~k) : k;
  }
  VESTA_DEVICE int64_t place(int64_t i) const { return chosen ? places[i] : first + i; }
};

template <class T, bool chosen>
VESTA_KERNEL void VESTA_BOUNDS(kThreads, 5) ranks_kernel(RanksLaunch l) {
  using From = Candidates<T, chosen>;
  using Key = typename From::Key;
  constexpr unsigned kRoom = Kept<Key>::kRoom;
  constexpr unsigned N = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
  constexpr unsigned kChunk = kRoom / 2, kPacks = kChunk / (kThreads * N);
  static_assert(kPacks > 0 && kChunk >= kMostRanks);
  VESTA_SHARED(Key, keys, kRoom);
  VESTA_SHARED(unsigned, places, kRoom);
  VESTA_SHARED(unsigned, used, 1);
  const Kept<Key> kept{keys, places};
  const int64_t line = int64_t(blockIdx.x) / l.pieces, part = int64_t(blockIdx.x) % l.pieces;
  const int64_t begin = part * l.piece, left = l.length - begin;
  const From from{static_cast<const T*>(l.in) + line * l.length, l.chosen + line * l.piece, begin, l.largest};
  const int64_t end = chosen || left > l.piece ? l.piece : left;
  const unsigned t = threadIdx.x;

  unsigned wanted = kThreads;  // entries beyond which a sort pays, a power of two
  while (wanted < 4 * l.count && wanted < kChunk) wanted *= 2;
  unsigned start = end < int64_t(wanted) ? unsigned(end) : wanted;
  const unsigned beyond = unsigned((reinterpret_cast<uintptr_t>(from.line + begin + start) / sizeof(T)) % N);
  const bool packed = !chosen && start - beyond >= l.count && start >= kThreads;  // then the rest is aligned
  if (packed) start -= beyond;
  for (unsigned i = t; i < start; i += kThreads) {
    const int64_t place = from.place(i);
    keys[i] = from.key(from.line[place]), places[i] = unsigned(place);
  }
  kept.sort(start);
  if (t == 0) used[0] = l.count;
  block_barrier();
  unsigned here = l.count;
  Key threshold = keys[here - 1];
  const auto join = [&](Key key, unsigned place) {
    if (key >= threshold) return;  // of equals those that came before stay
    const unsigned slot = atomic_add(&used[0], 1u);
    keys[slot] = key, places[slot] = place;
  };
  Elements<T, N> pack[kPacks], next[kPacks];
  const auto load = [&](Elements<T, N>(&to)[kPacks], int64_t at) {
    VESTA_UNROLL
    for (unsigned u = 0; u < kPacks; ++u)
      to[u] = *reinterpret_cast<const Elements<T, N>*>(from.line + begin + at + (u * kThreads + t) * N);
  };
  if (packed && start + kChunk <= end) load(pack, start);
  for (int64_t at = start; at < end; at += kChunk) {
    if (packed && at + kChunk <= end) {
      if (at + 2 * kChunk <= end) load(next, at + kChunk);  // under way while this chunk is looked at
      VESTA_UNROLL
      for (unsigned u = 0; u < kPacks; ++u) {
        VESTA_UNROLL
        for (unsigned j = 0; j < N; ++j)
          join(from.key(pack[u].v[j]), unsigned(begin + at + (u * kThreads + t) * N + j));
      }
      VESTA_UNROLL
      for (unsigned u = 0; u < kPacks; ++u) pack[u] = next[u];
    } else {
      Key key[kPacks * N];
      VESTA_UNROLL
      for (unsigned u = 0; u < kPacks * N; ++u) {
        const int64_t i = at + u * kThreads + t;
        key[u] = i < end ? from.key(from.line[from.place(i)]) : Key(~Key(0));  // that is never before the threshold
      }
      VESTA_UNROLL
      for (unsigned u = 0; u < kPacks * N; ++u) {
        const int64_t i = at + u * kThreads + t;
        if (key[u] < threshold) join(key[u], unsigned(from.place(i)));
      }
    }
    block_barrier();
    here = used[0];
    block_barrier();
    if (here <= wanted) continue;
    kept.sort(here);
    if (t == 0) used[0] = l.count;
    here = l.count;
    threshold = keys[here - 1];
    block_barrier();
  }
  if (here > l.count) kept.sort(here);
  const int64_t outer = int64_t(blockIdx.x) / l.inner * l.count, column = int64_t(blockIdx.x) % l.inner;
  for (unsigned i = t; i < l.count; i += kThreads) l.places[(outer + i) * l.inner + column] = int64_t(places[i]);
}

}  // namespace

void run_ranks(const RanksLaunch& l) {
  const LaunchShape shape = linear_shape(uint64_t(l.lines * l.pieces) * kThreads, kThreads, l.stream);
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    if (l.chosen) launch_block("ranks", ranks_kernel<T, true>, shape, l);
    else launch_block("ranks", ranks_kernel<T, false>, shape, l);
  });
}

}  // namespace vesta::cuda
