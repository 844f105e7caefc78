// Attention that never writes the matrix of scores (Dao et al., "FlashAttention", 2022; the running maximum is that of
// Milakov and Gimelshein). A tour: a block owns a tile of rows of the result and walks over tiles of the other side.
// For each it computes a tile of scores from pieces of two operands in shared memory, turns it into weights, and adds
// weights times rows of a third operand to sums in registers (attention_tiles.cuh). Forward, rows are queries, and sums
// are scaled whenever a larger score turns up. The gradient has a kernel for each operand: rows of queries walk over
// keys, those of keys and of values over queries. So nobody adds to another block's sums, and no order of blocks shows.
//
// The sums of an element run over the other side's tiles in order: their bits depend on sizes of tiles that follow from
// the dtype alone, not on rows, heads or batch.
#pragma once
#include <vesta/core/base/philox.h>
#include <vesta/cuda/kernels/attention_tiles.cuh>

namespace vesta::cuda {
namespace {

/// Keeps registers so few that `blocks` blocks of a kernel fit a multiprocessor.
#ifdef __CUDACC__
#define VESTA_BLOCKS(blocks) __launch_bounds__(kAttentionThreads, blocks)
#else
#define VESTA_BLOCKS(blocks)
#endif
/// What one head's queries see: scores are -inf where they see nothing, and outside.
template <class T>
struct Seen {
  using C = compute_of<T>;
  const AttentionLaunch& l;
  int64_t first;
  VESTA_DEVICE Seen(const AttentionLaunch& launch, int64_t batch, int64_t head)
      : l(launch), first(batch * launch.mask.batch + head * launch.mask.head) {}
  VESTA_DEVICE C masked(C score, int64_t query, int64_t key) const {
    if (query >= l.queries || key >= l.keys || (l.causal && key > query)) return C(-INFINITY);
    const int64_t at = first + query * l.mask.row + key * l.mask.column;
    switch (l.mask.kind) {
      case AttentionMask::boolean: return static_cast<const bool*>(l.mask.data)[at] ? score : C(-INFINITY);
      case AttentionMask::same: return score + convert<C>(static_cast<const T*>(l.mask.data)[at]);
      case AttentionMask::single: return score + convert<C>(static_cast<const float*>(l.mask.data)[at]);
      default: return score;
    }
  }
};

/// What dropout multiplies the weights of a head by: that of weight i of all is native_dropout's of element i.
template <class C>
struct Kept {
  uint64_t seed, offset, first, keys, block = ~uint64_t(0);
  uint32_t last;
  C scale;
  bool on;
  Philox4 words{};
  VESTA_DEVICE Kept(const AttentionLaunch& l, int64_t batch, int64_t head)
      : seed(l.seed),
        offset(l.offset),
        first(uint64_t(batch * l.heads + head) * uint64_t(l.queries) * uint64_t(l.keys)),
        keys(uint64_t(l.keys)),
        last(last_event(l.kept)),
        scale(l.kept > 0 ? C(1 / l.kept) : C(0)),
        on(l.kept < 1) {}
  /// Neighbouring keys of a query share a block of random numbers: ask for them one after the other.
  VESTA_DEVICE C factor(int64_t query, int64_t key) {
    if (!on) return C(1);
    const uint64_t i = first + uint64_t(query) * keys + uint64_t(key);
    if (i / 4 != block) block = i / 4, words = philox_block(seed, offset, block);
    const unsigned n = unsigned(i % 4);
    const uint32_t low = n % 2 ? words.word[1] : words.word[0], high = n % 2 ? words.word[3] : words.word[2];
    return (n < 2 ? low : high) <= last ? scale : C(0);
  }
};

/// A block's part of the work: a tile of rows of a head, and some columns of the result.
struct AttentionPart {
  int64_t batch, head, row, column;
  /// `heavy_last`: the last rows have the most work; they are done first.
  VESTA_DEVICE AttentionPart(int64_t number, int64_t heads, int64_t rows, int tile, int64_t columns, int wide,
                             bool heavy_last) {
    const int64_t pieces = (columns + wide - 1) / wide, tiles = (rows + tile - 1) / tile;
    column = number % pieces * wide, number /= pieces;
    const int64_t at = number % tiles;
    row = (heavy_last ? tiles - 1 - at : at) * tile, number /= tiles;
    batch = number / heads, head = number % heads;
  }
  static VESTA_HD int64_t count(int64_t batch, int64_t heads, int64_t rows, int tile, int64_t columns, int wide) {
    return batch * heads * ((rows + tile - 1) / tile) * ((columns + wide - 1) / wide);
  }
};

template <class T, int m, int wide>
VESTA_KERNEL void VESTA_BLOCKS(wide == 64 ? 2 : 1) attention_kernel(AttentionLaunch l, int64_t parts) {
  using C = compute_of<T>;
  using Tiles = AttentionTiles<T, m, wide>;
  using Memory = typename Tiles::Memory;
  constexpr int n = kScores<C>, R = m / 16, N = n / 16;
  VESTA_SHARED(Memory, memory, 1);
  const Tiles tiles{memory[0]};
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  const C scale = C(l.scale);
  const auto largest = [](C a, C b) { return b > a ? b : a; };  // NaN is found in the sum
  const auto plus = [](C a, C b) { return a + b; };
  for (int64_t number = blockIdx.x; number < parts; number += gridDim.x) {
    const AttentionPart part(number, l.heads, l.queries, m, l.value_size, wide, true);
    const int64_t shared_head = part.head / l.group;
    const HeadRows<T> q(l.q, part.batch, part.head, l.queries, l.key_size);
    const HeadRows<T> k(l.k, part.batch, shared_head, l.keys, l.key_size);
    const HeadRows<T> v(l.v, part.batch, shared_head, l.keys, l.value_size);
    const Seen<T> seen(l, part.batch, part.head);
    Kept<C> kept(l, part.batch, part.head);
    C top[R], total[R], sum[R][wide / 16];
    for (int i = 0; i < R; ++i) {
      top[i] = C(-INFINITY), total[i] = 0;
      VESTA_UNROLL
      for (int j = 0; j < wide / 16; ++j) sum[i][j] = 0;
    }
    const int64_t end = l.causal && part.row + m < l.keys ? part.row + m : l.keys;
    for (int64_t first = 0; first < end; first += n) {
      C score[R][N] = {};
      tiles.add_products(score, q, part.row, k, first);
      VESTA_UNROLL
      for (int i = 0; i < R; ++i) {
        const int64_t query = part.row + ty * R + i;
        C most = C(-INFINITY), more = 0;
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          score[i][j] = seen.masked(score[i][j] * scale, query, first + tx * N + j);
          most = largest(most, score[i][j]);
        }
        most = largest(top[i], group_reduce(most, 16, largest));
        const C shift = finite_top(most), correction = math::exp(top[i] - shift);
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          const int column = tx * N + j;
          const C weight = math::exp(score[i][j] - shift);
          more = more + weight;
          tiles.set_weight(ty * R + i, column, weight * kept.factor(query, first + column));
        }
        total[i] = total[i] * correction + group_reduce(more, 16, plus);
        top[i] = most;
        VESTA_UNROLL
        for (int j = 0; j < wide / 16; ++j) sum[i][j] = sum[i][j] * correction;
      }
      tiles.add_weighted(sum, v, first, end - first < n ? int(end - first) : n, part.column);
    }
    const auto blind = [&](int i) { return l.mask.kind != AttentionMask::none && top[i] == C(-INFINITY); };
    store_sums<m, wide>(sum, HeadRows<T>(l.out, part.batch, part.head, l.queries, l.value_size), part.row, part.column,
                        [&](int i, C s) { return blind(i) ? C(0) : s / total[i]; });
    for (int i = 0; i < R; ++i) {
      const int64_t query = part.row + ty * R + i;
      if (tx != 0 || part.column != 0 || query >= l.queries) continue;
      C* tops = static_cast<C*>(l.top) + (part.batch * l.heads + part.head) * l.queries;
      tops[query] = blind(i) ? C(INFINITY) : finite_top(top[i]) + math::log(total[i]);
    }
  }
}

enum class GradientOf { query, key, value };

template <class T, GradientOf of, int wide>
VESTA_KERNEL void VESTA_BLOCKS(1) attention_gradient_kernel(AttentionLaunch l, int64_t parts) {
  using C = compute_of<T>;
  constexpr int n = kScores<C>, N = n / 16;
  constexpr bool by_key = of != GradientOf::query;
  using Tiles = AttentionTiles<T, n, wide>;
  using Memory = typename Tiles::Memory;
  VESTA_SHARED(Memory, memory, 1);
  const Tiles tiles{memory[0]};
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  const C scale = C(l.scale);
  const int64_t own_rows = by_key ? l.keys : l.queries, heads = by_key ? l.heads / l.group : l.heads;
  const int64_t columns = of == GradientOf::value ? l.value_size : l.key_size;
  for (int64_t number = blockIdx.x; number < parts; number += gridDim.x) {
    const AttentionPart part(number, heads, own_rows, n, columns, wide, !by_key);
    C sum[N][wide / 16] = {};
    const int64_t first_head = by_key ? part.head * l.group : part.head, shared_head = first_head / l.group;
    const HeadRows<T> k(l.k, part.batch, shared_head, l.keys, l.key_size);
    const HeadRows<T> v(l.v, part.batch, shared_head, l.keys, l.value_size);
    for (int64_t head = first_head; head < first_head + (by_key ? l.group : 1); ++head) {
      const HeadRows<T> q(l.q, part.batch, head, l.queries, l.key_size);
      const HeadRows<T> g(l.grad, part.batch, head, l.queries, l.value_size);
      const Seen<T> seen(l, part.batch, head);
      Kept<C> kept(l, part.batch, head);
      const int64_t of_head = (part.batch * l.heads + head) * l.queries;
      const C *top = static_cast<const C*>(l.top) + of_head, *inner = static_cast<const C*>(l.inner) + of_head;
      const int64_t begin = by_key && l.causal ? part.row : 0;  // of the first query that sees these keys
      const int64_t other_rows = by_key ? l.queries : l.keys;
      const int64_t end = !by_key && l.causal && part.row + n < other_rows ? part.row + n : other_rows;
      for (int64_t first = begin; first < end; first += n) {
        C score[N][N] = {}, of_weight[N][N] = {};
        if constexpr (by_key) tiles.add_products(score, k, part.row, q, first);
        else tiles.add_products(score, q, part.row, k, first);
        if constexpr (of == GradientOf::key) tiles.add_products(of_weight, v, part.row, g, first);
        if constexpr (of == GradientOf::query) tiles.add_products(of_weight, g, part.row, v, first);
        VESTA_UNROLL
        for (int at = 0; at < N * N; ++at) {  // neighbouring keys follow each other
          const int i = by_key ? at % N : at / N, j = by_key ? at / N : at % N;
          const int row = ty * N + i, column = tx * N + j;
          const int64_t own = part.row + row, other = first + column;
          const int64_t query = by_key ? other : own, key = by_key ? own : other;
          const bool exists = query < l.queries;
          const C weight = math::exp(seen.masked(score[i][j] * scale, query, key) - (exists ? top[query] : C(0)));
          const C factor = kept.factor(query, key);
          C w = weight * factor;
          if (of != GradientOf::value) w = weight * (of_weight[i][j] * factor - (exists ? inner[query] : C(0)));
          tiles.set_weight(row, column, w);
        }
        const int count = end - first < n ? int(end - first) : n;
        const HeadRows<T>& rows = of == GradientOf::query ? k : of == GradientOf::key ? q : g;
        tiles.add_weighted(sum, rows, first, count, part.column);
      }
    }
    const AttentionOperand& to = of == GradientOf::query ? l.of_q : of == GradientOf::key ? l.of_k : l.of_v;
    const C factor = of == GradientOf::value ? C(1) : scale;
    store_sums<n, wide>(sum, HeadRows<T>(to, part.batch, part.head, own_rows, columns), part.row, part.column,
                        [&](int, C s) { return s * factor; });
  }
}

/// Sums grad * out over the columns of each query: what the gradient of a softmax takes away.
template <class T>
VESTA_KERNEL void attention_inner_kernel(AttentionLaunch l, int64_t rows) {
  using C = compute_of<T>;
  const GroupTeam team(32);
  const bool exists = int64_t(team.row) < rows;
  const int64_t number = exists ? int64_t(team.row) : 0, query = number % l.queries, head = number / l.queries;
  const HeadRows<T> g(l.grad, head / l.heads, head % l.heads, l.queries, l.value_size);
  const HeadRows<T> y(l.out, head / l.heads, head % l.heads, l.queries, l.value_size);
  C sum = 0;
  for (int64_t c = int64_t(team.rank) * kPack; exists && c < l.value_size; c += int64_t(team.size) * kPack) {
    C a[kPack], b[kPack];
    g.load(query, c, a), y.load(query, c, b);
    sum = sum + ((a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]));
  }
  sum = team.reduce(sum, [](C a, C b) { return a + b; });
  if (exists && team.rank == 0) static_cast<C*>(l.inner)[number] = sum;
}

template <class Kernel>
void queue_attention(const char* name, Kernel* kernel, const AttentionLaunch& l, int64_t parts) {
  LaunchShape shape;
  shape.grid[0] = unsigned(parts < INT32_MAX ? parts : INT32_MAX);
  shape.block[0] = kAttentionThreads;
  shape.stream = l.stream;
  launch_block(name, kernel, shape, l, parts);
}

template <class T, int m, int wide>
void queue_forward(const AttentionLaunch& l) {
  queue_attention("attention", attention_kernel<T, m, wide>, l,
                  AttentionPart::count(l.batch, l.heads, l.queries, m, l.value_size, wide));
}

template <class T, GradientOf of, int wide>
void queue_gradient(const AttentionLaunch& l) {
  constexpr bool by_key = of != GradientOf::query;
  const int64_t heads = by_key ? l.heads / l.group : l.heads, rows = by_key ? l.keys : l.queries;
  const int64_t columns = of == GradientOf::value ? l.value_size : l.key_size;
  queue_attention("attention_gradient", attention_gradient_kernel<T, of, wide>, l,
                  AttentionPart::count(l.batch, heads, rows, kScores<compute_of<T>>, columns, wide));
}

/// Runs f<64>() or f<128>(): how many columns of the result a block sums.
template <class F>
void with_columns(int64_t columns, F f) {
  if (columns <= 64) f.template operator()<64>();
  else f.template operator()<128>();
}

template <class T>
void run_forward(const AttentionLaunch& l) {
  with_columns(l.value_size, [&]<int wide>() {
    // few queries (text that is generated word by word) leave most rows of a large tile empty
    if (l.queries <= 16) queue_forward<T, 16, wide>(l);
    else queue_forward<T, kScores<compute_of<T>>, wide>(l);
  });
}

template <class T>
void run_gradient(const AttentionLaunch& l) {
  const int64_t rows = l.batch * l.heads * l.queries;
  launch_block("attention_inner", attention_inner_kernel<T>, team_shape(uint64_t(rows), 32, l.stream), l, rows);
  with_columns(l.key_size, [&]<int wide>() {
    queue_gradient<T, GradientOf::query, wide>(l);
    queue_gradient<T, GradientOf::key, wide>(l);
  });
  with_columns(l.value_size, [&]<int wide>() { queue_gradient<T, GradientOf::value, wide>(l); });
}

template <DTypeSet Set>
bool run_attention(const AttentionLaunch& l, bool gradient) {
  return visit_device<Set>(l.dtype, [&]<class T>() {
    if (gradient) run_gradient<T>(l);
    else run_forward<T>(l);
  });
}

#undef VESTA_BLOCKS

}  // namespace
}  // namespace vesta::cuda
