// Teams: the threads that share one row. A team is a group of 1, 2, 4, ... 32 lanes of a warp (short rows) or a whole
// block (long rows). A value is combined over a team along a tree that depends on its size alone, and every member gets
// the same bits.
#pragma once
#include <vesta/cuda/kernels/axes.h>
#include <vesta/cuda/kernels/packs.cuh>

namespace vesta::cuda {

constexpr unsigned kTeamThreads = 256;  // threads of a block

/// Combines over groups of `width` neighbouring lanes (a power of two). All lanes of the warp take part.
template <class T, class F>
VESTA_DEVICE T group_reduce(T v, unsigned width, F combine) {
  for (unsigned step = width / 2; step > 0; step /= 2) {
    const unsigned lane = lane_index(), other = lane ^ step;
    const T w = shuffle(v, other);
    v = lane < other ? combine(v, w) : combine(w, v);
  }
  return v;
}

/// Combines over a block of `warps` warps (a power of two). All threads take part. `turn` counts the calls: those with
/// equal types use two places by turns, so that each call waits once, for what the warps write. The few parts of
/// `kWarps` warps, if that is not 0, are read by every thread: along the same tree, without a shuffle.
template <unsigned kWarps = 0, class T, class F>
VESTA_DEVICE T block_reduce(T v, F combine, unsigned turn, unsigned warps = kTeamThreads / 32) {
  constexpr unsigned kMost = kTeamThreads / 32;
  VESTA_SHARED(T, parts, 2 * kMost);
  T* const mine = parts + turn % 2 * kMost;
  v = group_reduce(v, 32, combine);
  if (lane_index() == 0) mine[warp_index()] = v;
  block_barrier();
  if constexpr (kWarps == 2) return combine(mine[0], mine[1]);
  else if constexpr (kWarps == 4) return combine(combine(mine[0], mine[2]), combine(mine[1], mine[3]));
  else return group_reduce(mine[lane_index() & (warps - 1)], warps, combine);
}

/// A group of lanes: it has row `row` of the grid, and this thread is number `rank` of `size`.
struct GroupTeam {
  unsigned rank, size;
  uint64_t row;
  VESTA_DEVICE explicit GroupTeam(unsigned width)
      : rank(threadIdx.x % width),
        size(width),
        row(uint64_t(blockIdx.x) * (blockDim.x / width) + threadIdx.x / width) {}
  template <class T, class F>
  VESTA_DEVICE T reduce(T v, F combine) const {
    return group_reduce(v, size, combine);
  }
  /// Returns whether `v` is true for any team of the warp, which then takes part in what its members do together.
  VESTA_DEVICE bool any(bool v) const { return any_lane(v); }
};
/// A warp as a team, of a size that the compiler knows: places within a row become numbers in its instructions.
struct WarpTeam : GroupTeam {
  static constexpr unsigned size = 32;
  VESTA_DEVICE explicit WarpTeam(unsigned) : GroupTeam(size) {}
  template <class T, class F>
  VESTA_DEVICE T reduce(T v, F combine) const {
    return group_reduce(v, size, combine);
  }
};
/// A block of `width` threads as a team: 64, 128 or 256. One kernel serves all three.
struct SmallBlockTeam {
  unsigned rank, size;
  uint64_t row;
  mutable unsigned turn = 0;
  VESTA_DEVICE explicit SmallBlockTeam(unsigned width) : rank(threadIdx.x), size(width), row(blockIdx.x) {}
  template <class T, class F>
  VESTA_DEVICE T reduce(T v, F combine) const {
    return block_reduce(v, combine, turn++, size / 32);
  }
  VESTA_DEVICE bool any(bool v) const { return v; }
};
/// A block of kThreads threads as a team, which the compiler knows.
template <unsigned kThreads>
struct BlockTeamOf : SmallBlockTeam {
  static constexpr unsigned size = kThreads;
  VESTA_DEVICE explicit BlockTeamOf(unsigned) : SmallBlockTeam(kThreads) {}
  template <class T, class F>
  VESTA_DEVICE T reduce(T v, F combine) const {
    return block_reduce<kThreads / 32>(v, combine, turn++);
  }
};
using BlockTeam = BlockTeamOf<kTeamThreads>;

/// A group of `width` lanes or, if above 32, a block of as many threads. One kernel serves both.
struct GroupOrBlock {
  unsigned rank, size;
  uint64_t row;
  mutable unsigned turn = 0;
  VESTA_DEVICE explicit GroupOrBlock(unsigned width)
      : rank(threadIdx.x % width),
        size(width),
        row(uint64_t(blockIdx.x) * (blockDim.x / width) + threadIdx.x / width) {}
  template <class T, class F>
  VESTA_DEVICE T reduce(T v, F combine) const {
    if (size > 32) return block_reduce(v, combine, turn++, size / 32);
    return group_reduce(v, size, combine);
  }
  VESTA_DEVICE bool any(bool v) const { return size > 32 ? v : any_lane(v); }
};

/// Returns the launch shape of one team per row: groups of `width` lanes, or blocks of `width` threads, if above 32.
inline LaunchShape team_shape(uint64_t rows, unsigned width, StreamHandle stream) {
  return linear_shape(rows * width, width > 32 ? width : kTeamThreads, stream);
}
/// Chooses a team's width for rows of n elements in packs of `pack`: up to 1024 elements go to one warp or less.
inline unsigned team_width(int64_t n, int pack) {
  if (n > 1024) return kTeamThreads;
  unsigned width = 1;
  while (width < 32 && int64_t(width) * pack < n) width *= 2;
  return width;
}

/// A fixed positive divisor: numbers below 2^31 are divided by a multiplication, larger ones in the usual way.
struct Divider {
  FastDivisor fast;
  int64_t divisor = 1;
  Divider() = default;
  explicit Divider(int64_t d) : fast(d < kSmall ? uint32_t(d) : uint32_t(kSmall)), divisor(d) {}
  VESTA_HD int64_t divide(int64_t n) const { return n < kSmall ? int64_t(fast.divide(uint32_t(n))) : n / divisor; }

 private:
  static constexpr int64_t kSmall = (int64_t(1) << 31) - 1;
};

/// The kernel's form of Axes, with prepared divisors.
struct AxisTable {
  int count = 0;
  Divider sizes[kMaxAxes];
  int64_t strides[kMaxAxes] = {};

  AxisTable() = default;
  explicit AxisTable(const Axes& a) : count(a.count) {
    for (int d = 0; d < count; ++d) sizes[d] = Divider(a.sizes[d] ? a.sizes[d] : 1), strides[d] = a.strides[d];
  }
  /// Returns the offset of element i, counted along the axes with axis 0 fastest.
  VESTA_HD int64_t offset(int64_t i) const {
    if (count == 0) return 0;
    int64_t at = 0;
    VESTA_ROLLED
    for (int d = 0; d < count - 1; ++d) {
      const int64_t next = sizes[d].divide(i);
      at += (i - next * sizes[d].divisor) * strides[d];
      i = next;
    }
    return at + i * strides[count - 1];
  }
};

}  // namespace vesta::cuda
