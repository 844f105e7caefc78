// Rows that are read once and kept: a team holds its row in registers (up to 1024 columns a warp or less, up to 8192 a
// block) or in shared memory (a block), or reads it again if it fits in neither. A row is cut into packs of four
// columns (of 16-bit floats eight: 16 bytes), of which every member of the team takes each size-th. A member loads
// several packs before it uses one, without a branch in between, so that their loads do not wait for each other.
#pragma once
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {

constexpr int kPack = 4;  // columns of load_columns and store_columns, by default
/// The columns of a pack of a row of T.
template <class T>
inline constexpr int row_pack = sizeof(T) == 2 ? 8 : kPack;
constexpr unsigned kRowBytes = 47 << 10;  // of the 48 KiB that any GPU gives a block; a KiB is for static arrays

/// Loads columns [c, c + N) of a row of n; columns past the end are `rest`. `packed`: the row is aligned for packs.
template <int N = kPack, class T>
VESTA_DEVICE void load_columns(const T* row, int64_t c, int64_t n, bool packed, compute_of<T> rest, compute_of<T>* to) {
  using C = compute_of<T>;
  if (packed && c + N <= n) {
    const auto pack = *reinterpret_cast<const Elements<T, N>*>(row + c);
    widen(pack, to);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) to[j] = c + j < n ? convert<C>(row[c + j]) : rest;
  }
}
template <int N = kPack, class T>
VESTA_DEVICE void store_columns(T* row, int64_t c, int64_t n, bool packed, const compute_of<T>* from) {
  if (packed && c + N <= n) {
    *reinterpret_cast<Elements<T, N>*>(row + c) = narrowed<T, N>(from);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (c + j < n) row[c + j] = convert<T>(from[j]);
    }
  }
}

/// A pack as it lies in memory. For 16-bit floats that may be replaced by another value, nvcc splits words into halves
/// as soon as they arrive: more instructions, and a wait where the pack is for later.
struct alignas(16) PackWords {
  unsigned words[4];
};
template <class T>
VESTA_DEVICE PackWords load_words(const T* from) {
  return *reinterpret_cast<const PackWords*>(from);
}
template <class T>
VESTA_DEVICE void widen(const PackWords& from, compute_of<T>* to) {
  Elements<T, int(16 / sizeof(T))> pack;
  __builtin_memcpy(&pack, &from, sizeof pack);
  widen(pack, to);
}

/// Loads packs of a row of n columns, the first at column c, the next `step` further; columns past the end are `rest`.
/// `packed`: the row consists of aligned packs. Kernels are made for both, so that what runs is short: warps that jump
/// over the other code wait for instructions. I counts columns: int, or int64_t for rows of any length.
template <bool packed, class T, class I, int kPacks>
VESTA_DEVICE void load_packs(const T* row, I c, I step, I n, T rest, Elements<T, row_pack<T>> (&packs)[kPacks]) {
  constexpr int N = row_pack<T>;
  Elements<T, N> none;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) none.v[j] = rest;
  if constexpr (packed && sizeof none == sizeof(PackWords)) {
    PackWords filler;
    __builtin_memcpy(&filler, &none, sizeof none);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const I at = c + I(k) * step;
      PackWords words = filler;
      if (at < n) words = load_words(row + at);
      __builtin_memcpy(&packs[k], &words, sizeof words);
    }
  } else if constexpr (packed) {
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const I at = c + I(k) * step;
      packs[k] = none;
      if (at < n) packs[k] = *reinterpret_cast<const Elements<T, N>*>(row + at);
    }
  } else {
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      packs[k] = none;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const I at = c + I(k) * step + j;
        if (at < n) packs[k].v[j] = row[at];
      }
    }
  }
}
/// Stores a pack at column c of a row of n columns.
template <bool packed, class T, class I>
VESTA_DEVICE void store_pack(T* row, I c, int64_t n, const compute_of<T>* from) {
  constexpr int N = row_pack<T>;
  const auto pack = narrowed<T, N>(from);
  if constexpr (packed) {
    *reinterpret_cast<Elements<T, N>*>(row + c) = pack;
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (c + j < I(n)) row[c + j] = pack.v[j];
    }
  }
}
/// Sums the N values of a pack, as a tree.
template <int N, class C>
VESTA_DEVICE C pack_sum(const C* v) {
  if constexpr (N == 1) return v[0];
  else return pack_sum<N / 2>(v) + pack_sum<N / 2>(v + N / 2);
}

/// A thread's part of a row, kept in registers: kPacks packs. What `each` gives may be changed, and is kept.
template <class T, int kPacks, bool packed_>
struct RegisterRow {
  static constexpr bool keeps_changes = true, packed = packed_;
  static constexpr int N = row_pack<T>;
  using C = compute_of<T>;
  using Second = RegisterRow;
  C at[kPacks][N];
  template <class Team>
  VESTA_DEVICE RegisterRow(const Team& team, const T* row, int64_t n, C rest, bool exists) {
    Elements<T, N> packs[kPacks];
    load_packs<packed>(row, first_of(team, 0), int(team.size) * N, exists ? int(n) : 0, convert<T>(rest), packs);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) widen(packs[k], at[k]);
  }
  /// Calls f(first column, values) for each pack that begins within the row.
  template <class Team, class F>
  VESTA_DEVICE void each(const Team& team, const T*, int64_t n, C, F f) {
    const int columns = int(n);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int c = first_of(team, k);
      if (c < columns) f(c, at[k]);
    }
  }
  /// Calls f(first column, values) for each pack, those past the row too, which hold `rest`: without a branch.
  template <class Team, class F>
  VESTA_DEVICE void every(const Team& team, const T*, int64_t, C, F f) {
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) f(first_of(team, k), at[k]);
  }
  /// Calls f(first column, values, the second row's values) as `each` does.
  template <class Team, class F>
  VESTA_DEVICE void each_of_two(const Team& team, Second& second, const T*, int64_t n, C, F f) {
    const int columns = int(n);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int c = first_of(team, k);
      if (c < columns) f(c, at[k], second.at[k]);
    }
  }

 private:
  template <class Team>
  static VESTA_DEVICE int first_of(const Team& team, int k) {
    return int(team.rank + unsigned(k) * team.size) * N;
  }
};

/// A row that is read where it is needed, beside one that is kept.
template <class T>
struct ReadRow {
  const T* row;
  compute_of<T> rest;
  template <class Team>
  VESTA_DEVICE ReadRow(const Team&, const T* r, int64_t, compute_of<T> value, bool) : row(r), rest(value) {}
};

/// A block's row, kept in shared memory if it fits, else read again. A thread reads only what it has written itself,
/// so no barrier is needed.
template <class T, bool packed_>
struct BlockRow {
  static constexpr bool keeps_changes = false, packed = packed_;
  static constexpr int N = row_pack<T>, kAhead = sizeof(T) < 8 ? 4 : 2;
  static constexpr int64_t kStep = int64_t(kTeamThreads) * N;
  using C = compute_of<T>;
  using Second = ReadRow<T>;
  using Pack = Elements<T, N>;
  T* kept;
  VESTA_DEVICE BlockRow(const BlockTeam& team, const T* row, int64_t n, C rest, bool) {
    VESTA_DYNAMIC_SHARED(T, memory);
    kept = fits(n) ? memory : nullptr;
    if (!kept) return;
    VESTA_ROLLED
    for (int64_t first = int64_t(team.rank) * N; first < n; first += kAhead * kStep) {
      Pack packs[kAhead];
      load_packs<packed>(row, first, kStep, n, convert<T>(rest), packs);
      VESTA_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const int64_t c = first + k * kStep;
        if (c < n) *reinterpret_cast<Pack*>(kept + c) = packs[k];
      }
    }
  }
  template <class F>
  VESTA_DEVICE void each(const BlockTeam& team, const T* row, int64_t n, C rest, F f) {
    VESTA_ROLLED
    for (int64_t first = int64_t(team.rank) * N; first < n; first += kAhead * kStep) {
      Pack packs[kAhead];
      load(row, first, n, rest, packs);
      VESTA_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        const int64_t c = first + k * kStep;
        C v[N];
        widen(packs[k], v);
        if (c < n) f(c, v);
      }
    }
  }
  template <class F>
  VESTA_DEVICE void every(const BlockTeam& team, const T* row, int64_t n, C rest, F f) {
    each(team, row, n, rest, f);
  }
  template <class F>
  VESTA_DEVICE void each_of_two(const BlockTeam& team, Second& second, const T* row, int64_t n, C rest, F f) {
    constexpr int kTwo = kAhead / 2;  // of each
    VESTA_ROLLED
    for (int64_t first = int64_t(team.rank) * N; first < n; first += kTwo * kStep) {
      Pack packs[kTwo], seconds[kTwo];
      load(row, first, n, rest, packs);
      load_packs<packed>(second.row, first, kStep, n, convert<T>(second.rest), seconds);
      VESTA_UNROLL
      for (int k = 0; k < kTwo; ++k) {
        const int64_t c = first + k * kStep;
        C v[N], w[N];
        widen(packs[k], v), widen(seconds[k], w);
        if (c < n) f(c, v, w);
      }
    }
  }
  template <int kPacks>
  VESTA_DEVICE void load(const T* row, int64_t c, int64_t n, C rest, Pack (&packs)[kPacks]) const {
    if (kept) load_packs<true>(kept, c, kStep, n, convert<T>(rest), packs);
    else load_packs<packed>(row, c, kStep, n, convert<T>(rest), packs);
  }
  static VESTA_HD bool fits(int64_t n) { return bytes(n) <= kRowBytes; }
  static VESTA_HD uint64_t bytes(int64_t n) { return uint64_t((n + N - 1) / N * N) * sizeof(T); }
};

/// Computes e^x for x <= 0 in a row of T. 16-bit floats take the square of the GPU's power of two: it is off by 2^-21
/// and |x| 2^-24 of its value, far less than they round by, and reaches down to denormal numbers.
template <class T>
VESTA_DEVICE compute_of<T> row_exp(compute_of<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (is_half_type<T>) {
    float root;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x * 0.72134752044448170368f));  // log2(e) / 2
    return root * root;
  } else
#endif
    return math::exp(x);
}
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
/// Adds the columns of a pack of a row of T to a sum. Those past the end are -inf.
template <class T>
VESTA_DEVICE void add_exp(ExpSum<compute_of<T>>& s, const compute_of<T>* v) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const C wider = extremum(s.top, pack_extremum<N>(v)), shift = finite_top(wider);
  C e[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) e[j] = row_exp<T>(v[j] - shift);
  s.sum = (s.top == wider ? s.sum : s.sum * math::exp(s.top - shift)) + pack_sum<N>(e);
  s.top = wider;
}
/// Sums exp over a row; every member of the team gets it.
template <class Row, class Team, class T>
VESTA_DEVICE ExpSum<compute_of<T>> row_exp_sum(Row& held, const Team& team, const T* row, int64_t n) {
  using C = compute_of<T>;
  ExpSum<C> s{C(-INFINITY), C(0)};
  held.each(team, row, n, C(-INFINITY), [&](auto, const C* v) { add_exp<T>(s, v); });
  return team.reduce(s, [](const ExpSum<C>& a, const ExpSum<C>& b) { return combine_exp_sums(a, b); });
}
/// The set of kernels that hold rows: one for each of the ways in which a row of some length is held fastest, and of
/// packed 16-bit floats, if `sized`, one for each size of a block; or two, where more are not worth their time to
/// compile.
enum class RowKernels { sized, every, few };

/// Calls `f.template operator()<Row, Team>(shape, width)` with the types that hold rows of n columns of T. A thread
/// holds at most 32 columns. With 16-bit floats it has all of them before the row takes another warp: more bytes are in
/// flight, and less of the time goes to exchanging sums.
template <class T, bool packed, RowKernels kernels, class F>
void with_rows_of(uint64_t rows, int64_t n, StreamHandle stream, F f) {
  constexpr int N = row_pack<T>, kMost = 32 / N, kFew = 4;  // packs of a thread
  constexpr bool every = kernels != RowKernels::few;
  auto run = [&]<class Row, class Team>(unsigned width) {
    LaunchShape shape = team_shape(rows, width, stream);
    if constexpr (!Row::keeps_changes) {
      if (Row::fits(n)) shape.shared_bytes = unsigned(Row::bytes(n));
    }
    f.template operator()<Row, Team>(shape, width);
  };
  const unsigned width = team_width(n, N);
  using ShortRow = RegisterRow<T, 1024 / (32 * N), packed>;
  if constexpr (every) {
    if (n <= 32 * N) return run.template operator()<RegisterRow<T, 1, packed>, GroupTeam>(width);
    if (width <= 32) return run.template operator()<ShortRow, WarpTeam>(32);
  } else {
    if (width <= 32) return run.template operator()<ShortRow, GroupTeam>(width);
  }
  if constexpr (every && sizeof(T) == 2) {
    unsigned threads = 64;
    while (threads < kTeamThreads && n > int64_t(threads) * kMost * N) threads *= 2;
    if (n <= int64_t(threads) * kMost * N) {
      using Row = RegisterRow<T, kMost, packed>;
      if constexpr (packed && kernels == RowKernels::sized) {
        if (threads == 64) return run.template operator()<Row, BlockTeamOf<64>>(threads);
        if (threads == 128) return run.template operator()<Row, BlockTeamOf<128>>(threads);
        return run.template operator()<Row, BlockTeam>(threads);
      } else {
        return run.template operator()<Row, SmallBlockTeam>(threads);
      }
    }
  } else if constexpr (every) {
    if (n <= int64_t(kTeamThreads) * kFew * N)
      return run.template operator()<RegisterRow<T, kFew, packed>, BlockTeam>(kTeamThreads);
    if (n <= int64_t(kTeamThreads) * kMost * N)
      return run.template operator()<RegisterRow<T, kMost, packed>, BlockTeam>(kTeamThreads);
  }
  run.template operator()<BlockRow<T, packed>, BlockTeam>(kTeamThreads);
}
/// Does the same for rows that consist of aligned packs, if `packed`. Those of float64 run as any others and by few
/// kernels: its formulas are long, to run and to compile.
template <class T, RowKernels kernels = RowKernels::every, class F>
void with_rows(uint64_t rows, int64_t n, [[maybe_unused]] bool packed, StreamHandle stream, F f) {
  if constexpr (sizeof(T) < 8) {
    if (packed) return with_rows_of<T, true, kernels>(rows, n, stream, f);
    with_rows_of<T, false, kernels>(rows, n, stream, f);
  } else {
    with_rows_of<T, false, RowKernels::few>(rows, n, stream, f);
  }
}

}  // namespace vesta::cuda
