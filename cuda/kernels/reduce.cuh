// The two kernels of a reduction, for any operation `Op`:
//   Op::In, Op::Acc            element and accumulator
//   identity(), combine(a, b)  associative up to rounding
//   load(v, i, at)             element v, number i of its result, at offset `at` of the operand
//   converts                   whether load() is the conversion to Acc; not read where there is load_aligned()
//   fold(a, v, first)          where there is one: combines `a` with the pack v, whose first element is number `first`,
//                              to the bits of combine() and load(), or with
//   missing()                  an element that changes nothing: packs that are cut off are filled with it, and folded
//   load_aligned(pack, at, v)  where there is one: load() of a pack at an aligned offset, whose numbers do not matter
//   store(k, a)                writes result number k
#pragma once
#include <cmath>

#include <vesta/cuda/kernels/reduce.h>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {

/// Returns the value that loses against every other one: the lowest, or the highest if the smallest is sought.
template <class C>
VESTA_DEVICE C extreme_value(bool smallest) {
  if constexpr (std::is_floating_point_v<C>) {
    return smallest ? C(INFINITY) : C(-INFINITY);
  } else {
    constexpr C low = static_cast<C>(C(1) << (8 * sizeof(C) - 1));
    return smallest ? static_cast<C>(~low) : low;
  }
}

/// The integers whose largest element is the extremum that is sought in those of some dtype: for unsigned ones the sign
/// is turned, for the smallest all bits. One kernel of a size serves them all.
template <class T>
struct TurnedIntegers {
  T turned;  // the bits

  static TurnedIntegers of(DType d, bool smallest) {
    const T sign = d == DType::uint8 ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);
    return {T(smallest ? ~sign : sign)};
  }
  VESTA_DEVICE T operator()(T v) const { return T(v ^ turned); }
};

constexpr int kChains = 4;  // independent partial results of a thread: loads in flight, and a flatter tree

struct RowsArgs {
  const char* x;
  AxisTable kept, reduced;
  int64_t results, count, piece;
  Divider pieces;
  unsigned width;
  bool packed;
};

template <class T>
constexpr int reduce_pack = sizeof(T) >= 16 ? 1 : int(16 / sizeof(T));

/// A thread's partial results: pack number k joins chain k mod kChains.
template <class Op>
struct Chains {
  typename Op::Acc at[kChains];
  int turns = 0;

  VESTA_DEVICE explicit Chains(const Op& op) {
    VESTA_UNROLL
    for (int u = 0; u < kChains; ++u) at[u] = op.identity();
  }
  /// Takes `last` for the next chain. They rotate instead of being indexed, so that all of them stay in registers.
  VESTA_DEVICE void turn(typename Op::Acc last) {
    VESTA_UNROLL
    for (int u = 0; u + 1 < kChains; ++u) at[u] = at[u + 1];
    at[kChains - 1] = last;
    ++turns;
  }
  VESTA_DEVICE typename Op::Acc total(const Op& op) {
    VESTA_ROLLED
    while (turns % kChains != 0) turn(at[0]);
    return op.combine(op.combine(at[0], at[1]), op.combine(at[2], at[3]));
  }
};

/// Makes accumulators of a pack's elements, which are numbers first + j * number_step at offsets at + j.
template <class Op, int N>
VESTA_DEVICE void load_pack(const Op& op, const Elements<typename Op::In, N>& pack, int64_t first, int64_t number_step,
                            int64_t at, typename Op::Acc (&v)[N]) {
  if constexpr (requires { op.load_aligned(pack, at, v); }) {
    op.load_aligned(pack, at, v);
  } else if constexpr (Op::converts && is_half_type<typename Op::In>) {
    widen(pack, v);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = op.load(pack.v[j], first + j * number_step, at + j);
  }
}

/// Combines `a` with a pack whose first element is number `first`, at offset `at`.
template <class Op, int N>
VESTA_DEVICE typename Op::Acc fold_pack(const Op& op, const typename Op::Acc& a,
                                        const Elements<typename Op::In, N>& pack, int64_t first, int64_t at) {
  if constexpr (requires { op.fold(a, pack, first); }) {
    return op.fold(a, pack, first);
  } else {
    typename Op::Acc v[N];
    load_pack(op, pack, first, 1, at, v);
    VESTA_UNROLL
    for (int j = 1; j < N; ++j) v[0] = op.combine(v[0], v[j]);
    return op.combine(a, v[0]);
  }
}

/// Combines `acc` with elements [first, first + N) of a result, of which only those below `end` exist, in the same
/// order.
template <class Op, int N>
VESTA_DEVICE typename Op::Acc fold_elements(const Op& op, const typename Op::Acc& acc, const RowsArgs& a,
                                            const typename Op::In* x, int64_t base, int64_t first, int64_t end) {
  if constexpr (requires { Op::missing(); }) {
    Elements<typename Op::In, N> pack;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      pack.v[j] = first + j < end ? x[base + a.reduced.offset(first + j)] : Op::missing();
    }
    return op.fold(acc, pack, first);
  } else {
    typename Op::Acc r = op.identity();
    if (a.reduced.count <= 1) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const int64_t at = base + (first + j) * a.reduced.strides[0];
        if (first + j < end) r = op.combine(r, op.load(x[at], first + j, at));
      }
    } else {
      VESTA_ROLLED
      for (int j = 0; j < N; ++j) {
        if (first + j >= end) break;
        const int64_t at = base + a.reduced.offset(first + j);
        r = op.combine(r, op.load(x[at], first + j, at));
      }
    }
    return op.combine(acc, r);
  }
}

/// Reduces with a team per result or piece of one. Which elements are combined depends on their numbers alone, not on
/// how they are loaded.
template <class Op, class Team>
VESTA_KERNEL void reduce_rows_kernel(Op op, RowsArgs a) {
  using Acc = typename Op::Acc;
  constexpr int N = reduce_pack<typename Op::In>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.results * a.pieces.divisor;
  const int64_t result = a.pieces.divide(int64_t(team.row)), part = int64_t(team.row) - result * a.pieces.divisor;
  const int64_t begin = part * a.piece;
  const int64_t end = exists ? (begin + a.piece < a.count ? begin + a.piece : a.count) : begin;
  const int64_t base = exists ? a.kept.offset(result) : 0;
  const auto* x = reinterpret_cast<const typename Op::In*>(a.x);
  Chains<Op> chains(op);
  const int64_t step = int64_t(team.size) * N;
  int64_t first = begin + int64_t(team.rank) * N;
  using Pack = Elements<typename Op::In, N>;
  if (a.packed) {
    VESTA_ROLLED
    for (; first + (kChains - 1) * step + N <= end; first += kChains * step) {
      Pack packs[kChains];  // all are loaded before one is used
      int64_t at[kChains];
      VESTA_UNROLL
      for (int u = 0; u < kChains; ++u) {
        at[u] = base + a.reduced.offset(first + u * step);
        packs[u] = *reinterpret_cast<const Pack*>(x + at[u]);
      }
      VESTA_UNROLL
      for (int u = 0; u < kChains; ++u) chains.at[u] = fold_pack(op, chains.at[u], packs[u], first + u * step, at[u]);
    }
  }
  VESTA_ROLLED
  for (; first < end; first += step) {
    if (a.packed && first + N <= end) {
      const int64_t at = base + a.reduced.offset(first);
      chains.turn(fold_pack(op, chains.at[0], *reinterpret_cast<const Pack*>(x + at), first, at));
    } else {
      chains.turn(fold_elements<Op, N>(op, chains.at[0], a, x, base, first, end));
    }
  }
  const Acc r = team.reduce(chains.total(op), [&](const Acc& p, const Acc& q) { return op.combine(p, q); });
  if (exists && team.rank == 0) op.store(int64_t(team.row), r);
}

struct ColumnsArgs {
  const char* x;
  AxisTable kept, reduced;
  int64_t columns, count, piece;
  unsigned tiles, pieces, width;
  bool packed;
};

/// A thread's part of a tile: N columns, side by side if they are loaded as a pack, else `width` apart. Which rows are
/// combined does not depend on that: row number k of a thread joins chain k mod kChains.
template <class Op, int N>
struct TileColumns {
  using T = typename Op::In;
  using Acc = typename Op::Acc;
  static constexpr int kAhead = sizeof(Acc) <= 4 ? 2 * kChains : kChains;  // rows that are in flight
  int64_t first;
  unsigned apart;
  Acc chains[kChains][N];

  VESTA_DEVICE TileColumns(const Op& op, const ColumnsArgs& a, unsigned tile, unsigned thread)
      : first(int64_t(tile) * a.width * N + (a.packed ? thread * N : thread)), apart(a.packed ? 1 : a.width) {
    VESTA_UNROLL
    for (int u = 0; u < kChains; ++u) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) chains[u][j] = op.identity();
    }
  }
  VESTA_DEVICE int64_t column(int j) const { return first + int64_t(j) * apart; }
  VESTA_DEVICE Elements<T, N> pack_at(const T* x, int64_t at) const {
    return *reinterpret_cast<const Elements<T, N>*>(x + at + first);
  }
  VESTA_DEVICE void load(const Op& op, const ColumnsArgs& a, const T* x, int64_t at, int64_t row, Acc (&v)[N]) const {
    if (a.packed) return load_pack(op, pack_at(x, at), row, 0, at + first, v);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      v[j] = op.identity();
      if (column(j) < a.columns) v[j] = op.load(x[at + column(j)], row, at + column(j));
    }
  }
  /// Rotates the chains by one, so that all of them stay in registers; the last becomes `last`.
  VESTA_DEVICE void turn(const Acc (&last)[N]) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      VESTA_UNROLL
      for (int u = 0; u + 1 < kChains; ++u) chains[u][j] = chains[u + 1][j];
      chains[kChains - 1][j] = last[j];
    }
  }
  /// Reduces rows begin, begin + step, ... below `end`, and returns the columns' results.
  VESTA_DEVICE void reduce(const Op& op, const ColumnsArgs& a, int64_t base, int64_t begin, int64_t end, unsigned step,
                           Acc (&r)[N]) {
    const T* x = reinterpret_cast<const T*>(a.x);
    int64_t row = begin;
    if (a.packed) {
      VESTA_ROLLED
      for (; row + (kAhead - 1) * step < end; row += kAhead * step) {
        Elements<T, N> packs[kAhead];  // all are loaded before one is used
        int64_t at[kAhead];
        VESTA_UNROLL
        for (int u = 0; u < kAhead; ++u) {
          at[u] = base + a.reduced.offset(row + u * step);
          packs[u] = pack_at(x, at[u]);
        }
        VESTA_UNROLL
        for (int u = 0; u < kAhead; ++u) {
          Acc v[N];
          load_pack(op, packs[u], row + u * step, 0, at[u] + first, v);
          VESTA_UNROLL
          for (int j = 0; j < N; ++j) chains[u % kChains][j] = op.combine(chains[u % kChains][j], v[j]);
        }
      }
    }
    int turns = 0;
    VESTA_ROLLED
    for (; row < end || turns % kChains != 0; row += step, ++turns) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) r[j] = op.identity();
      if (row < end) load(op, a, x, base + a.reduced.offset(row), row, r);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) r[j] = op.combine(chains[0][j], r[j]);
      turn(r);
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j)
      r[j] = op.combine(op.combine(chains[0][j], chains[1][j]), op.combine(chains[2][j], chains[3][j]));
  }
};

/// Reduces with a block per tile of `width` packs of columns and piece of the rows; its threads share the rows of the
/// tile.
template <class Op>
VESTA_KERNEL void reduce_columns_kernel(Op op, ColumnsArgs a) {
  using Acc = typename Op::Acc;
  constexpr int N = column_pack(sizeof(typename Op::In), sizeof(typename Op::Acc));
  VESTA_SHARED(Acc, parts, kTeamThreads * N);
  const unsigned tile = blockIdx.x % a.tiles, rest = blockIdx.x / a.tiles, part = rest % a.pieces,
                 outer = rest / a.pieces;
  const unsigned lanes = kTeamThreads / a.width, lane = threadIdx.x / a.width, thread = threadIdx.x % a.width;
  const int64_t begin = part * a.piece, end = begin + a.piece < a.count ? begin + a.piece : a.count;
  const int64_t base = a.kept.offset(outer);
  TileColumns<Op, N> mine(op, a, tile, thread);
  Acc r[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) r[j] = op.identity();
  if (mine.column(0) < a.columns) mine.reduce(op, a, base, begin + lane, end, lanes, r);
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) parts[j * kTeamThreads + threadIdx.x] = r[j];
  for (unsigned half = lanes / 2; half > 0; half /= 2) {
    block_barrier();
    if (lane >= half) continue;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      Acc* slot = parts + j * kTeamThreads + threadIdx.x;
      *slot = r[j] = op.combine(r[j], slot[half * a.width]);
    }
  }
  if (lane != 0) return;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const int64_t column = mine.column(j);
    if (column < a.columns) op.store((int64_t(outer) * a.pieces + part) * a.columns + column, r[j]);
  }
}

/// Calls `f.template operator()<T>(dtype)` for the elements of an order: bools and unsigned bytes come as signed ones,
/// which TurnedIntegers makes of them.
template <class F>
void visit_by_order(DType d, F f) {
  constexpr DTypeSet kSigned = {uint16_t(kReals.bits & ~set_of(DType::uint8).bits)};
  const DType real = d == DType::bool_ ? DType::uint8 : d;
  visit_device<kSigned>(real == DType::uint8 ? DType::int8 : real, [&]<class T>() { f.template operator()<T>(real); });
}

/// Queues a stage of one long result along rows: a block for each piece, however short the last one is.
template <class Op>
void run_pieces_stage(const Op& op, const ReduceStage& s) {
  const RowsArgs a{s.x,     AxisTable(s.kept), AxisTable(s.reduced), 1,       s.reduced.numel(),
                   s.piece, Divider(s.pieces), kTeamThreads,         s.packed};
  launch_block(s.name, reduce_rows_kernel<Op, BlockTeam>, team_shape(uint64_t(s.pieces), kTeamThreads, s.stream), op,
               a);
}

/// Queues a stage along rows.
template <class Op>
void run_rows_stage(const Op& op, const ReduceStage& s) {
  const int64_t results = s.kept.numel(), count = s.reduced.numel();
  constexpr int N = reduce_pack<typename Op::In>;
  RowsArgs a{s.x, AxisTable(s.kept), AxisTable(s.reduced), results, count, s.piece, Divider(s.pieces), 1, s.packed};
  if (!s.per_thread) a.width = team_width(count < s.piece ? count : s.piece, N);
  const LaunchShape shape = team_shape(uint64_t(results * s.pieces), a.width, s.stream);
  if (a.width > 32) launch_block(s.name, reduce_rows_kernel<Op, BlockTeam>, shape, op, a);
  else if (a.width == 1) launch_independent(s.name, reduce_rows_kernel<Op, GroupTeam>, shape, op, a);
  else launch_block(s.name, reduce_rows_kernel<Op, GroupTeam>, shape, op, a);
}

/// Queues a stage with operation `op`.
template <class Op>
void run_stage(const Op& op, const ReduceStage& s) {
  if (!s.columns) return run_rows_stage(op, s);
  const int64_t results = s.kept.numel(), count = s.reduced.numel();
  constexpr int N = column_pack(sizeof(typename Op::In), sizeof(typename Op::Acc));
  unsigned width = 1;
  while (width < 32 && int64_t(width) * N < s.columns) width *= 2;
  const int64_t tiles = (s.columns + width * N - 1) / (width * N);
  ColumnsArgs a{s.x,     AxisTable(s.kept), AxisTable(s.reduced), s.columns, count,
                s.piece, unsigned(tiles),   unsigned(s.pieces),   width,     s.packed};
  launch_block(s.name, reduce_columns_kernel<Op>,
               linear_shape(uint64_t(results * s.pieces * tiles) * kTeamThreads, kTeamThreads, s.stream), op, a);
}

}  // namespace vesta::cuda
