// Rows that are read once and kept: a team holds its row in registers (up to 1024 columns a warp or less, up to 8192 a
// block) or in shared memory (a block), or reads it again if it fits in neither. A row is cut into packs of four
// columns, of which every member of the team takes each size-th.
#pragma once
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {

constexpr int kPack = 4;  // columns
constexpr unsigned kRowBytes = 47 << 10;  // of the 48 KiB that any GPU gives a block; a KiB is for static arrays

/// Loads columns [c, c + N) of a row of n; columns past the end are `rest`. `packed`: the row is aligned for packs.
template <int N = kPack, class T>
VESTA_DEVICE void load_columns(const T* row, int64_t c, int64_t n, bool packed, compute_of<T> rest, compute_of<T>* to) {
  using C = compute_of<T>;
  if (packed && c + N <= n) {
    const auto pack = *reinterpret_cast<const Elements<T, N>*>(row + c);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) to[j] = convert<C>(pack.v[j]);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) to[j] = c + j < n ? convert<C>(row[c + j]) : rest;
  }
}
template <int N = kPack, class T>
VESTA_DEVICE void store_columns(T* row, int64_t c, int64_t n, bool packed, const compute_of<T>* from) {
  if (packed && c + N <= n) {
    Elements<T, N> pack;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) pack.v[j] = convert<T>(from[j]);
    *reinterpret_cast<Elements<T, N>*>(row + c) = pack;
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (c + j < n) row[c + j] = convert<T>(from[j]);
    }
  }
}

/// A thread's part of a row, kept in registers: kPacks packs. What `each` gives may be changed, and is kept.
template <class T, int kPacks>
struct RegisterRow {
  static constexpr bool keeps_changes = true;
  using C = compute_of<T>;
  using Second = RegisterRow;
  C at[kPacks][kPack];
  template <class Team>
  VESTA_DEVICE RegisterRow(const Team& team, const T* row, int64_t n, bool packed, C rest, bool exists) {
    const int columns = exists ? int(n) : 0;
    if (packed && columns % kPack == 0) {  // all packs are loaded before one is converted
      Elements<T, kPack> packs[kPacks];
      VESTA_UNROLL
      for (int k = 0; k < kPacks; ++k) {
        const int c = first_of(team, k);
        if (c < columns) packs[k] = *reinterpret_cast<const Elements<T, kPack>*>(row + c);
      }
      VESTA_UNROLL
      for (int k = 0; k < kPacks; ++k) {
        const bool inside = first_of(team, k) < columns;
        VESTA_UNROLL
        for (int j = 0; j < kPack; ++j) at[k][j] = inside ? convert<C>(packs[k].v[j]) : rest;
      }
      return;
    }
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) load_columns(row, first_of(team, k), columns, packed, rest, at[k]);
  }
  /// Calls f(first column, values) for each pack that begins within the row.
  template <class Team, class F>
  VESTA_DEVICE void each(const Team& team, const T*, int64_t n, bool, C, F f) {
    const int columns = int(n);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int c = first_of(team, k);
      if (c < columns) f(int64_t(c), at[k]);
    }
  }
  /// Calls f(first column, values, the second row's values) likewise.
  template <class Team, class F>
  VESTA_DEVICE void each_of_two(const Team& team, Second& second, const T*, int64_t n, bool, C, F f) {
    const int columns = int(n);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int c = first_of(team, k);
      if (c < columns) f(int64_t(c), at[k], second.at[k]);
    }
  }

 private:
  template <class Team>
  static VESTA_DEVICE int first_of(const Team& team, int k) {
    return int(team.rank + unsigned(k) * team.size) * kPack;
  }
};

/// A row that is read where it is needed, beside one that is kept.
template <class T>
struct ReadRow {
  const T* row;
  bool packed;
  compute_of<T> rest;
  template <class Team>
  VESTA_DEVICE ReadRow(const Team&, const T* r, int64_t, bool p, compute_of<T> value, bool)
      : row(r), packed(p), rest(value) {}
};

/// A block's row, kept in shared memory if it fits, else read again. A thread reads only what it has written itself,
/// so no barrier is needed.
template <class T>
struct BlockRow {
  static constexpr bool keeps_changes = false;
  using C = compute_of<T>;
  using Second = ReadRow<T>;
  C* kept;
  VESTA_DEVICE BlockRow(const BlockTeam& team, const T* row, int64_t n, bool packed, C rest, bool) {
    VESTA_DYNAMIC_SHARED(C, memory);
    kept = fits(n) ? memory : nullptr;
    if (!kept) return;
    for (int64_t c = int64_t(team.rank) * kPack; c < n; c += int64_t(kTeamThreads) * kPack) {
      Elements<C, kPack> pack;
      load_columns(row, c, n, packed, rest, pack.v);
      *reinterpret_cast<Elements<C, kPack>*>(kept + c) = pack;
    }
  }
  template <class F>
  VESTA_DEVICE void each(const BlockTeam& team, const T* row, int64_t n, bool packed, C rest, F f) {
    for (int64_t c = int64_t(team.rank) * kPack; c < n; c += int64_t(kTeamThreads) * kPack) {
      Elements<C, kPack> pack;
      if (kept) pack = *reinterpret_cast<const Elements<C, kPack>*>(kept + c);
      else load_columns(row, c, n, packed, rest, pack.v);
      f(c, pack.v);
    }
  }
  template <class F>
  VESTA_DEVICE void each_of_two(const BlockTeam& team, Second& second, const T* row, int64_t n, bool packed, C rest,
                                F f) {
    each(team, row, n, packed, rest, [&](int64_t c, C* v) {
      C w[kPack];
      load_columns(second.row, c, n, second.packed, second.rest, w);
      f(c, v, w);
    });
  }
  static VESTA_HD bool fits(int64_t n) { return bytes(n) <= kRowBytes; }
  static VESTA_HD uint64_t bytes(int64_t n) { return uint64_t((n + kPack - 1) / kPack * kPack) * sizeof(C); }
};

/// The sum of exp(x - top) over some columns, top their maximum. Two such are combined without overflow.
template <class C>
struct ExpSum {
  C top, sum;
};
/// Returns what to subtract before exp: the maximum, but 0 if it is -inf, so that exp gives 0 and not NaN.
template <class C>
VESTA_DEVICE C finite_top(C top) {
  return top == C(-INFINITY) ? C(0) : top;
}
template <class C>
VESTA_DEVICE ExpSum<C> combine_exp_sums(const ExpSum<C>& a, const ExpSum<C>& b) {
  const C top = math::maximum(a.top, b.top), shift = finite_top(top);
  return {top, a.sum * math::exp(a.top - shift) + b.sum * math::exp(b.top - shift)};
}
/// Adds the columns of a pack to a sum. Those past the end are -inf.
template <class C>
VESTA_DEVICE void add_exp(ExpSum<C>& s, const C* v) {
  const C top = math::maximum(math::maximum(v[0], v[1]), math::maximum(v[2], v[3]));
  const C wider = math::maximum(s.top, top), shift = finite_top(wider);
  const C sum =
      (math::exp(v[0] - shift) + math::exp(v[1] - shift)) + (math::exp(v[2] - shift) + math::exp(v[3] - shift));
  s.sum = (s.top == wider ? s.sum : s.sum * math::exp(s.top - shift)) + sum;
  s.top = wider;
}
/// Sums exp over a row; every member of the team gets it.
template <class Row, class Team, class T>
VESTA_DEVICE ExpSum<compute_of<T>> row_exp_sum(Row& held, const Team& team, const T* row, int64_t n, bool packed) {
  using C = compute_of<T>;
  ExpSum<C> s{C(-INFINITY), C(0)};
  held.each(team, row, n, packed, C(-INFINITY), [&](int64_t, const C* v) { add_exp(s, v); });
  return team.reduce(s, [](const ExpSum<C>& a, const ExpSum<C>& b) { return combine_exp_sums(a, b); });
}
/// Calls `f.template operator()<Row, Team>(shape, width)` with the types that hold rows of n columns of T.
template <class T, class F>
void with_rows(uint64_t rows, int64_t n, StreamHandle stream, F f) {
  const unsigned width = team_width(n, kPack);
  LaunchShape shape = team_shape(rows, width, stream);
  constexpr int64_t kBlockPack = int64_t(kTeamThreads) * kPack;
  constexpr int kMost = sizeof(T) < 8 ? 8 : 4;  // packs: 32 registers
  if (width > 32 && n <= 4 * kBlockPack) {
    f.template operator()<RegisterRow<T, 4>, BlockTeam>(shape, width);
  } else if (width > 32 && n <= kMost * kBlockPack) {
    f.template operator()<RegisterRow<T, kMost>, BlockTeam>(shape, width);
  } else if (width > 32) {
    if (BlockRow<T>::fits(n)) shape.shared_bytes = unsigned(BlockRow<T>::bytes(n));
    f.template operator()<BlockRow<T>, BlockTeam>(shape, width);
  } else if (n <= 32 * kPack) {
    f.template operator()<RegisterRow<T, 1>, GroupTeam>(shape, width);
  } else {
    f.template operator()<RegisterRow<T, 1024 / (32 * kPack)>, GroupTeam>(shape, width);
  }
}

}  // namespace vesta::cuda
