// Layer normalisation (Ba, Kiros and Hinton 2016) and normalisation by the root mean square (Zhang and Sennrich 2019):
// a team of threads for each row. Statistics are computed in the type of the computation: the deviations from a first
// mean are small numbers, whose own mean corrects the first, so that a large mean costs no digits and float needs no
// double.
//
// Note [What bounds a norm]
// On an H200 a forward of 4096 columns of bfloat16 took 70.9 us, and 78.6 after one kernel served blocks of all sizes;
// layer norm of 1024 columns reached 74% of the copy rate with its gradient, of bfloat16 45%. The code for sm_90 says
// why. Forward of 16-bit floats is bound by instructions: a thread of 32 columns ran 775, at 75 registers (six blocks
// of 128 threads). Teams of a size that the compiler knows (places become numbers in instructions, parts of a sum are
// read without shuffles), passes without a branch about packs, and 1 / n instead of divisions leave some 640, at 64
// registers (eight blocks, 64 KB in flight an SM). A tile's gradient with one row ahead had 24 KB of bfloat16 in
// flight, less than an SM needs (40): it has two (48 KB at 80 registers; of float32 one row is as much). What adds the
// tiles' parts runs 128 blocks for 1024 columns, so that its time is its turns of memory: two instead of seven.
#include <vesta/cuda/kernels/norm_sums.cuh>
#include <vesta/cuda/kernels/row_norm.h>
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {
namespace {

template <class T>
struct LayerNormArgs {
  using C = compute_of<T>;
  const T *x, *grad;
  T* y;
  C *mean, *rstd;
  ColumnVector<T> weight, bias;
  int64_t rows, n;
  C eps, inverse;  // 1 / n: a division takes as many instructions as ten elements
  unsigned width;
  unsigned* counters;  // that the gradient's first kernel sets to 0 for its second
  unsigned tiles;
};

/// Blocks of a multiprocessor: as many as registers allow with few or none that spill.
template <class T, class Row>
constexpr int kNormBlocks = sizeof(T) == 8                  ? 1
                            : sizeof(T) == 2 && Row::packed ? 4
                                                            : 2;

template <class T, class Row, class Team>
VESTA_KERNEL void VESTA_BOUNDS(kTeamThreads, (kNormBlocks<T, Row>)) layer_norm_kernel(LayerNormArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  const T* x = a.x + at;
  Row held(team, x, n, C(0), exists);
  C mean = a.mean ? row_mean(held, team, x, n, a.n) : C(0);
  const Pair<C> s = row_deviations(held, team, x, n, mean);
  C rest = a.mean ? s.a * a.inverse : C(0);
  const C squares = a.mean ? s.b - s.a * rest : s.b;
  C rstd = C(1) / math::sqrt(squares * a.inverse + a.eps);
  if constexpr (std::is_same_v<C, float>) {
    const bool beyond = !math::isfinite(s.b);
    if (team.any(beyond)) {
      const Pair<double> m = wide_moments(team, x, n, a.n, a.mean != nullptr);
      if (beyond) {
        if (!math::isfinite(mean)) {
          mean = C(m.a);
          if constexpr (Row::keeps_changes) {
            held = Row(team, x, n, C(0), exists);
            held.each(team, x, n, C(0), [&](int, C* v) {
              VESTA_UNROLL
              for (int j = 0; j < N; ++j) v[j] = v[j] - mean;
            });
          }
        }
        rest = C(m.a - double(mean)), rstd = C(1 / math::sqrt(m.b + double(a.eps)));
      }
    }
  }
  if (exists && team.rank == 0) {
    a.rstd[team.row] = rstd;
    if (a.mean) a.mean[team.row] = mean + rest;
  }
  with_vectors<T>(a.weight.wide, [&]<class V>() {
    held.each(team, x, n, C(0), [&](auto c, C* v) {
      C w[N], b[N];
      load_vector<V, Row::packed>(a.weight, c, n, w), load_vector<V, Row::packed>(a.bias, c, n, b);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const C d = Row::keeps_changes ? v[j] : v[j] - mean;
        v[j] = multiply_add((d - rest) * rstd, w[j], b[j]);
      }
      store_pack<Row::packed>(a.y + at, c, n, v);
    });
  });
}

// With x^ = (x - mean) * rstd, h = g * weight and n elements a row:
//   dx = rstd * (h - sum(h) / n - x^ * sum(h x^) / n),  without sum(h) / n where the mean is not a function of x but 0.
template <class T, class Row, class Team>
VESTA_KERNEL void VESTA_BOUNDS(kTeamThreads, (sizeof(T) < 8 ? 2 : 1)) layer_norm_backward_kernel(LayerNormArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  if (blockIdx.x == 0) {
    for (unsigned i = threadIdx.x; i < a.tiles; i += blockDim.x) a.counters[i] = 0;
  }
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  const C mean = exists && a.mean ? a.mean[team.row] : C(0), rstd = exists ? a.rstd[team.row] : C(0);
  Row held(team, a.grad + at, n, C(0), exists);
  typename Row::Second input(team, a.x + at, n, C(0), exists);
  with_vectors<T>(a.weight.wide, [&]<class V>() {
    /// Makes h of g and x^ of x.
    auto prepare = [&](auto c, C* g, C* x) {
      C w[N];
      load_vector<V, Row::packed>(a.weight, c, n, w);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) g[j] = g[j] * w[j], x[j] = (x[j] - mean) * rstd;
      clear_past<N, Row::packed>(c, n, x);  // g is 0 there
    };
    Pair<C> s{C(0), C(0)};
    held.each_of_two(team, input, a.grad + at, n, C(0), [&](auto c, C* g, C* x) {
      prepare(c, g, x);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) s.a = s.a + g[j], s.b = multiply_add(g[j], x[j], s.b);
    });
    s = team.reduce(s, [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); });
    const C average = a.mean ? s.a * a.inverse : C(0), slope = s.b * a.inverse;
    held.each_of_two(team, input, a.grad + at, n, C(0), [&](auto c, C* g, C* x) {
      if constexpr (!Row::keeps_changes) prepare(c, g, x);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) g[j] = rstd * multiply_add(-x[j], slope, g[j] - average);
      store_pack<Row::packed>(a.y + at, c, n, g);
    });
  });
}

/// The operands of the gradient by tiles of rows.
template <class T>
struct TiledArgs {
  LayerNormArgs<T> base;
  compute_of<T>* parts;  // [blocks, 2, n]
  int64_t piece;
};

/// Computes the same for a tile of rows, and sums g x^ and g over it: a thread has the same columns of each row of its
/// team, and loads rows before it uses one: 32 or more bytes of each operand, which of 16-bit floats are two rows.
template <class T, int kPacks>
VESTA_KERNEL void VESTA_BOUNDS((kPacks * row_pack<T> <= 8 ? 256 : 512), (kPacks * row_pack<T> <= 8 ? 3 : 1))
    tiled_backward_kernel(TiledArgs<T> tiled) {
  using C = compute_of<T>;
  using Sums = Pair<C>;
  constexpr int N = row_pack<T>;
  constexpr unsigned kWarps = 16;
  constexpr int kAhead = kPacks == 1 ? 2 : 1;  // rows
  VESTA_SHARED(Sums, of_warps, 2 * kWarps);
  VESTA_SHARED(Sums, of_teams, kTeamThreads);
  const LayerNormArgs<T>& a = tiled.base;
  const unsigned width = a.width, teams = blockDim.x / width, team = threadIdx.x / width, rank = threadIdx.x % width;
  const int n = int(a.n);
  const int64_t first = int64_t(blockIdx.x) * tiled.piece * teams + team;
  const auto add = [](const Sums& p, const Sums& q) { return add_pairs(p, q); };
  const auto column = [&](int k) { return int(rank + unsigned(k) * width) * N; };
  struct Loaded {
    PackWords g[kPacks], x[kPacks];
    C mean, rstd;
  };
  const auto load = [&](int64_t i) {
    const int64_t row = first + i * teams;
    const bool exists = row < a.rows;
    Loaded v;
    v.mean = exists && a.mean ? a.mean[row] : C(0), v.rstd = exists ? a.rstd[row] : C(0);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int c = column(k);
      v.g[k] = v.x[k] = {};
      if (exists && c < n) {
        v.g[k] = load_words(a.grad + row * n + c), v.x[k] = load_words(a.x + row * n + c);
      }
    }
    return v;
  };
  Sums of_columns[kPacks][N] = {};
  /// Uses row i, which lies in `next`, and loads the row that takes its place.
  const auto use = [&](int64_t i, Loaded& next) {
    C g[kPacks][N], x[kPacks][N];
    const C mean = next.mean, rstd = next.rstd;
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) widen<T>(next.g[k], g[k]), widen<T>(next.x[k], x[k]);
    if (i + kAhead < tiled.piece) next = load(i + kAhead);
    Sums s{C(0), C(0)};
    with_vectors<T>(a.weight.wide, [&]<class V>() {
      VESTA_UNROLL
      for (int k = 0; k < kPacks; ++k) {
        if (column(k) >= n) continue;
        C w[N];
        load_vector<V, true>(a.weight, column(k), n, w);
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          Sums& of_column = of_columns[k][j];
          x[k][j] = (x[k][j] - mean) * rstd;
          of_column.a = multiply_add(g[k][j], x[k][j], of_column.a), of_column.b = of_column.b + g[k][j];
          g[k][j] = g[k][j] * w[j];
          s.a = s.a + g[k][j], s.b = multiply_add(g[k][j], x[k][j], s.b);
        }
      }
    });
    s = group_reduce(s, width < 32 ? width : 32, add);
    if (width > 32) {  // a block is one team
      Sums* const mine = of_warps + i % 2 * kWarps;
      if (lane_index() == 0) mine[warp_index()] = s;
      block_barrier();
      s = group_reduce(mine[lane_index() % (width / 32)], width / 32, add);
    }
    const C average = a.mean ? s.a * a.inverse : C(0), slope = s.b * a.inverse;
    const int64_t row = first + i * teams;
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      if (row >= a.rows || column(k) >= n) continue;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) g[k][j] = rstd * multiply_add(-x[k][j], slope, g[k][j] - average);
      store_pack<true>(a.y + row * n, column(k), n, g[k]);
    }
  };
  Loaded ahead[kAhead];
  VESTA_UNROLL
  for (int k = 0; k < kAhead; ++k) ahead[k] = load(k);  // a piece has four rows or more
  VESTA_ROLLED
  for (int64_t i = 0; i < tiled.piece; i += kAhead) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      if (i + k < tiled.piece) use(i + k, ahead[k]);
    }
  }
  VESTA_UNROLL
  for (int k = 0; k < kPacks; ++k) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (teams > 1) {
        block_barrier();  // what was there has been read
        of_teams[threadIdx.x] = of_columns[k][j];
        for (unsigned half = teams / 2; half > 0; half /= 2) {
          block_barrier();
          if (team < half) {
            of_teams[threadIdx.x] = of_columns[k][j] =
                add_pairs(of_columns[k][j], of_teams[threadIdx.x + half * width]);
          }
        }
      }
      const int c = column(k) + j;
      if (team != 0 || c >= n) continue;
      C* const part = tiled.parts + 2 * int64_t(blockIdx.x) * n;
      part[c] = of_columns[k][j].a, part[n + c] = of_columns[k][j].b;
    }
  }
}

constexpr unsigned kPartThreads = 512, kPartColumns = 8, kPartLanes = kPartThreads / kPartColumns;

/// Adds what the blocks of tiled_backward_kernel have, in order and in double. Few blocks run, and each turn of a
/// thread waits for the memory: 64 lanes share a column, which takes two turns for the parts of the largest GPUs.
template <class C>
VESTA_KERNEL void VESTA_BOUNDS(kPartThreads, 2)
    add_parts_kernel(const C* parts, int64_t count, int64_t n, C* weight, C* bias) {
  VESTA_SHARED(Pair<double>, totals, kPartThreads);
  const unsigned lane = threadIdx.x / kPartColumns;
  const int64_t column = int64_t(blockIdx.x) * kPartColumns + threadIdx.x % kPartColumns;
  constexpr int kAhead = 8;
  Pair<double> s{0, 0};
  VESTA_ROLLED
  for (int64_t p = lane; column < n && p < count; p += kAhead * int64_t(kPartLanes)) {
    Pair<C> some[kAhead];
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = p + k * int64_t(kPartLanes);
      some[k] = {C(0), C(0)};
      if (at < count) some[k] = {parts[2 * at * n + column], parts[(2 * at + 1) * n + column]};
    }
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) s.a = s.a + double(some[k].a), s.b = s.b + double(some[k].b);
  }
  totals[threadIdx.x] = s;
  for (unsigned half = kPartLanes / 2; half > 0; half /= 2) {
    block_barrier();
    if (lane < half) totals[threadIdx.x] = s = add_pairs(s, totals[threadIdx.x + half * kPartColumns]);
  }
  if (lane != 0 || column >= n) return;
  weight[column] = C(s.a);
  if (bias) bias[column] = C(s.b);
}

template <class T>
struct ColumnSumsArgs {
  using C = compute_of<T>;
  const T *x, *grad;
  const C *mean, *rstd;
  C *parts, *weight, *bias;
  unsigned* counters;
  int64_t rows, n, piece, pieces;
  unsigned tiles;
};

constexpr unsigned kLanes = kTeamThreads / unsigned(kNormTile);  // threads that share a column

/// Sums both members over the lanes of each column; the first lane has the result.
template <class P>
VESTA_DEVICE P sum_lanes(P s, P* shared) {
  const unsigned lane = threadIdx.x / unsigned(kNormTile);
  block_barrier();  // what was there has been read
  shared[threadIdx.x] = s;
  for (unsigned half = kLanes / 2; half > 0; half /= 2) {
    block_barrier();
    if (lane < half) shared[threadIdx.x] = s = add_pairs(s, shared[threadIdx.x + half * unsigned(kNormTile)]);
  }
  return s;
}

/// Sums g x^ and g over the rows: a block sums a piece of the rows for a tile of columns, and the last block of a tile
/// adds its pieces, in order and in double. The order of blocks does not change a bit.
template <class T>
VESTA_KERNEL void column_sums_kernel(ColumnSumsArgs<T> a) {
  using C = compute_of<T>;
  VESTA_SHARED(Pair<C>, sums, kTeamThreads);
  VESTA_SHARED(Pair<double>, totals, kTeamThreads);
  VESTA_SHARED(unsigned, is_last, 1);
  const unsigned tile = blockIdx.x % a.tiles, lane = threadIdx.x / unsigned(kNormTile);
  const int64_t part = blockIdx.x / a.tiles, column = int64_t(tile) * kNormTile + threadIdx.x % unsigned(kNormTile);
  const int64_t begin = part * a.piece, end = begin + a.piece < a.rows ? begin + a.piece : a.rows;
  const bool there = column < a.n;
  Pair<C> s{C(0), C(0)};
  struct Loaded {
    T g, x;
    C mean, rstd;
  };
  auto load = [&](int64_t row) {
    return Loaded{a.grad[row * a.n + column], a.x[row * a.n + column], a.mean ? a.mean[row] : C(0), a.rstd[row]};
  };
  auto add = [&](const Loaded& v) {
    const C g = convert<C>(v.g), x = convert<C>(v.x);
    s.a = s.a + g * ((x - v.mean) * v.rstd), s.b = s.b + g;
  };
  constexpr int kAhead = 4;  // rows that are loaded before one is added
  int64_t row = there ? begin + lane : end;
  VESTA_ROLLED
  for (; row + (kAhead - 1) * int64_t(kLanes) < end; row += kAhead * int64_t(kLanes)) {
    Loaded some[kAhead];
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) some[k] = load(row + k * int64_t(kLanes));
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) add(some[k]);
  }
  VESTA_ROLLED
  for (; row < end; row += kLanes) add(load(row));
  s = sum_lanes(s, sums);
  if (lane == 0 && there) {
    a.parts[2 * part * a.n + column] = s.a, a.parts[(2 * part + 1) * a.n + column] = s.b;
    device_fence();
  }
  block_barrier();
  if (threadIdx.x == 0) is_last[0] = atomic_add(a.counters + tile, 1u) + 1 == unsigned(a.pieces);
  block_barrier();
  if (!is_last[0]) return;
  device_fence();
  const volatile C* parts = a.parts;  // of other blocks
  Pair<double> t{0, 0};
  for (int64_t p = lane; there && p < a.pieces; p += kLanes) {
    t.a = t.a + double(parts[2 * p * a.n + column]), t.b = t.b + double(parts[(2 * p + 1) * a.n + column]);
  }
  t = sum_lanes(t, totals);
  if (lane == 0 && there) {
    a.weight[column] = C(t.a);
    if (a.bias) a.bias[column] = C(t.b);
  }
}

template <class T>
LayerNormArgs<T> args_of(const LayerNormLaunch& l, unsigned width) {
  using C = compute_of<T>;
  return {reinterpret_cast<const T*>(l.x),
          nullptr,
          reinterpret_cast<T*>(l.y),
          reinterpret_cast<C*>(l.mean),
          reinterpret_cast<C*>(l.rstd),
          {l.weight, l.wide_vectors, C(1)},
          {l.bias, l.wide_vectors, C(0)},
          l.rows,
          l.n,
          C(l.eps),
          C(1) / C(l.n),
          width,
          nullptr,
          0};
}

}  // namespace

void layer_norm(const LayerNormLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const auto run = [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
      launch_block(l.mean ? "layer_norm" : "rms_norm", layer_norm_kernel<T, Row, Team>, shape, args_of<T>(l, width));
    };
    with_rows<T, RowKernels::sized>(uint64_t(l.rows), l.n, l.packed, l.stream, run);
  });
}

void layer_norm_backward(const LayerNormGradientLaunch& g) {
  const LayerNormLaunch& l = g.base;
  const unsigned tiles = unsigned((l.n + kNormTile - 1) / kNormTile);
  const char* const name = l.mean ? "_layer_norm_backward" : "_rms_norm_backward";
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    using C = compute_of<T>;
    if constexpr (sizeof(T) < 8) {
      if (g.reads_once()) {
        const NormTiles& t = g.tiles;
        TiledArgs<T> a{args_of<T>(l, t.width), reinterpret_cast<C*>(g.parts), t.piece};
        a.base.grad = reinterpret_cast<const T*>(g.grad);
        const LaunchShape shape = linear_shape(uint64_t(t.blocks) * t.threads, t.threads, l.stream);
        if (t.columns == 8) launch_block(name, tiled_backward_kernel<T, 8 / row_pack<T>>, shape, a);
        else launch_block(name, tiled_backward_kernel<T, 16 / row_pack<T>>, shape, a);
        const uint64_t blocks = uint64_t(l.n + kPartColumns - 1) / kPartColumns;
        return launch_block(name, add_parts_kernel<C>, linear_shape(blocks * kPartThreads, kPartThreads, l.stream),
                            reinterpret_cast<const C*>(g.parts), t.blocks, l.n, reinterpret_cast<C*>(g.weight_gradient),
                            reinterpret_cast<C*>(g.bias_gradient));
      }
    }
    const auto run = [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
      auto a = args_of<T>(l, width);
      a.grad = reinterpret_cast<const T*>(g.grad), a.counters = g.counters, a.tiles = tiles;
      launch_block(name, layer_norm_backward_kernel<T, Row, Team>, shape, a);
    };
    with_rows<T, RowKernels::few>(uint64_t(l.rows), l.n, l.packed, l.stream, run);
    const ColumnSumsArgs<T> a{reinterpret_cast<const T*>(l.x),
                              reinterpret_cast<const T*>(g.grad),
                              reinterpret_cast<const C*>(l.mean),
                              reinterpret_cast<const C*>(l.rstd),
                              reinterpret_cast<C*>(g.parts),
                              reinterpret_cast<C*>(g.weight_gradient),
                              reinterpret_cast<C*>(g.bias_gradient),
                              g.counters,
                              l.rows,
                              l.n,
                              g.piece,
                              g.pieces,
                              tiles};
    const LaunchShape shape = linear_shape(uint64_t(tiles) * uint64_t(g.pieces) * kTeamThreads, kTeamThreads, l.stream);
    launch_block(name, column_sums_kernel<T>, shape, a);
  });
}

}  // namespace vesta::cuda
