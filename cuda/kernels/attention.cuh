// Attention that never writes the matrix of scores (Dao et al., "FlashAttention", 2022; the running maximum is that of
// Milakov and Gimelshein). A tour: a block owns a tile of rows of the result and walks over tiles of the other side.
// For each it computes a tile of scores from pieces of two operands in shared memory (`add_products`), turns it into
// weights, and adds weights times rows of a third operand to sums in registers (`add_weighted`). Forward, rows are
// queries, and sums are scaled whenever a larger score turns up. The gradient has a kernel for each operand: rows of
// queries walk over keys, those of keys and of values over queries. So nobody adds to another block's sums, and no
// order of blocks shows.
//
// A thread has rows ty * R + i and columns tx * N + j of a tile of scores, of 16 x 16 threads; of the sums, groups of
// four columns 64 apart. The sums of an element run over the other side's tiles in order: their bits depend on sizes of
// tiles that follow from the dtype alone, not on rows, heads or batch.
#pragma once
#include <vesta/core/base/philox.h>
#include <vesta/cuda/kernels/attention.h>
#include <vesta/cuda/kernels/rows.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr int kAttentionThreads = 256;
/// Keeps registers so few that `blocks` blocks of a kernel fit a multiprocessor.
#ifdef __CUDACC__
#define VESTA_BLOCKS(blocks) __launch_bounds__(kAttentionThreads, blocks)
#else
#define VESTA_BLOCKS(blocks)
#endif
constexpr int kDepth = 32;  // of the size of a head, per step
constexpr int kLength = 16;  // rows that weights are multiplied with, per step
constexpr int kPad = 4;  // keeps columns of shared memory apart, and 16-byte accesses aligned
template <class C>
constexpr int kScores = sizeof(C) == 8 ? 32 : 64;  // rows and columns of a tile of scores

/// Reads n neighbours at an aligned place of shared memory.
template <int n, class C>
VESTA_DEVICE void read_shared(const C* from, C* to) {
  constexpr int step = n < 4 ? n : 4;
  VESTA_UNROLL
  for (int i = 0; i < n; i += step) {
    const auto pack = *reinterpret_cast<const Elements<C, step>*>(from + i);
    VESTA_UNROLL
    for (int j = 0; j < step; ++j) to[i + j] = pack.v[j];
  }
}

/// The rows of one head of an operand, multiplied by `factor` where they are read; zeros outside.
template <class T>
struct HeadRows {
  using C = compute_of<T>;
  T* data;
  int64_t stride, rows, columns;
  bool packed;
  C factor;
  VESTA_DEVICE HeadRows(const AttentionOperand& o, int64_t batch, int64_t head, int64_t n, int64_t size, C by = C(1))
      : data(static_cast<T*>(o.data) + batch * o.batch + head * o.head),
        stride(o.row),
        rows(n),
        columns(size),
        packed(o.packed),
        factor(by) {}
  VESTA_DEVICE void load(int64_t row, int64_t column, C* to) const {
    const bool inside = row < rows;
    load_columns(data + (inside ? row * stride : 0), column, inside ? columns : 0, packed, C(0), to);
    VESTA_UNROLL
    for (int j = 0; j < kPack; ++j) to[j] = to[j] * factor;
  }
};

/// Loads kDepth columns of `rows` rows, element (row, k) to `to[k * (rows + kPad) + row]`.
template <int rows, class T, class C>
VESTA_DEVICE void load_depth(C* to, const HeadRows<T>& from, int64_t first_row, int64_t first_k) {
  constexpr int packs = kDepth / kPack;
  for (int i = int(threadIdx.x); i < rows * packs; i += kAttentionThreads) {
    const int row = i / packs, k = i % packs * kPack;
    C v[kPack];
    from.load(first_row + row, first_k + k, v);
    VESTA_UNROLL
    for (int j = 0; j < kPack; ++j) to[(k + j) * (rows + kPad) + row] = v[j];
  }
}

/// Adds the products of m rows of `a` with n rows of `b`.
template <int m, int n, class T, class C>
VESTA_DEVICE void add_products(C (&sum)[m / 16][n / 16], C* memory, const HeadRows<T>& a, int64_t a_row,
                               const HeadRows<T>& b, int64_t b_row) {
  constexpr int R = m / 16, N = n / 16;
  C *of_a = memory, *of_b = memory + kDepth * (m + kPad);
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  for (int64_t first = 0; first < a.columns; first += kDepth) {
    block_barrier();  // what was there before has been read
    load_depth<m>(of_a, a, a_row, first);
    load_depth<n>(of_b, b, b_row, first);
    block_barrier();
    const int depth = a.columns - first < kDepth ? int(a.columns - first) : kDepth;
    for (int k = 0; k < depth; ++k) {
      C x[R], y[N];
      read_shared<R>(of_a + k * (m + kPad) + ty * R, x);
      read_shared<N>(of_b + k * (n + kPad) + tx * N, y);
      VESTA_UNROLL
      for (int i = 0; i < R; ++i) {
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) sum[i][j] = sum[i][j] + x[i] * y[j];
      }
    }
  }
}

/// Adds the weights of m rows, weights[k * (m + kPad) + row], times `count` rows of `of`, columns `first` and on.
template <int m, int wide, class T, class C>
VESTA_DEVICE void add_weighted(C (&sum)[m / 16][wide / 16], C* memory, const C* weights, const HeadRows<T>& of,
                               int64_t first_row, int count, int64_t first) {
  constexpr int R = m / 16, packs = wide / kPack;
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  for (int done = 0; done < count; done += kLength) {
    block_barrier();  // what was there before has been read, and the weights are written
    for (int i = int(threadIdx.x); i < kLength * packs; i += kAttentionThreads) {
      const int row = i / packs, column = i % packs * kPack;
      Elements<C, kPack> pack;
      of.load(first_row + done + row, first + column, pack.v);
      *reinterpret_cast<Elements<C, kPack>*>(memory + row * (wide + kPad) + column) = pack;
    }
    block_barrier();
    const int length = count - done < kLength ? count - done : kLength;
    for (int k = 0; k < length; ++k) {
      C x[R], y[4];
      read_shared<R>(weights + (done + k) * (m + kPad) + ty * R, x);
      VESTA_UNROLL
      for (int g = 0; g < wide / 64; ++g) {
        read_shared<4>(memory + k * (wide + kPad) + g * 64 + tx * 4, y);
        VESTA_UNROLL
        for (int i = 0; i < R; ++i) {
          VESTA_UNROLL
          for (int j = 0; j < 4; ++j) sum[i][4 * g + j] = sum[i][4 * g + j] + x[i] * y[j];
        }
      }
    }
  }
}

/// Stores a tile of sums; `value(i, sum)` is what becomes of the sums of a thread's row i.
template <int m, int wide, class T, class C, class F>
VESTA_DEVICE void store_sums(const C (&sum)[m / 16][wide / 16], const HeadRows<T>& to, int64_t row, int64_t column,
                             F value) {
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  VESTA_UNROLL
  for (int i = 0; i < m / 16; ++i) {
    const int64_t r = row + ty * (m / 16) + i;
    if (r >= to.rows) continue;
    VESTA_UNROLL
    for (int g = 0; g < wide / 64; ++g) {
      C v[4];
      VESTA_UNROLL
      for (int j = 0; j < 4; ++j) v[j] = value(i, sum[i][4 * g + j]);
      store_columns(to.data + r * to.stride, column + g * 64 + tx * 4, to.columns, to.packed, v);
    }
  }
}

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

template <class C>
constexpr int attention_memory(int m, int wide) {
  const int products = kDepth * (m + kScores<C> + 2 * kPad), weighted = kLength * (wide + kPad);
  return (products > weighted ? products : weighted) / 4;  // in packs of four
}

template <class T, int m, int wide>
VESTA_KERNEL void VESTA_BLOCKS(wide == 64 ? 2 : 1) attention_kernel(AttentionLaunch l, int64_t parts) {
  using C = compute_of<T>;
  using Pack = Elements<C, 4>;
  constexpr int n = kScores<C>, R = m / 16, N = n / 16;
  constexpr int kMemory = attention_memory<C>(m, wide), kWeights = n * (m + kPad) / 4;
  VESTA_SHARED(Pack, memory_packs, kMemory);
  VESTA_SHARED(Pack, weight_packs, kWeights);
  C *memory = memory_packs[0].v, *weights = weight_packs[0].v;
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  const auto largest = [](C a, C b) { return b > a ? b : a; };  // NaN is found in the sum
  const auto plus = [](C a, C b) { return a + b; };
  for (int64_t number = blockIdx.x; number < parts; number += gridDim.x) {
    const AttentionPart part(number, l.heads, l.queries, m, l.value_size, wide, true);
    const int64_t shared_head = part.head / l.group;
    const HeadRows<T> q(l.q, part.batch, part.head, l.queries, l.key_size, C(l.scale));
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
      add_products<m, n>(score, memory, q, part.row, k, first);
      VESTA_UNROLL
      for (int i = 0; i < R; ++i) {
        const int64_t query = part.row + ty * R + i;
        C most = C(-INFINITY), more = 0;
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          score[i][j] = seen.masked(score[i][j], query, first + tx * N + j);
          most = largest(most, score[i][j]);
        }
        most = largest(top[i], group_reduce(most, 16, largest));
        const C shift = finite_top(most), correction = math::exp(top[i] - shift);
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          const int column = tx * N + j;
          const C weight = math::exp(score[i][j] - shift);
          more = more + weight;
          weights[column * (m + kPad) + ty * R + i] = weight * kept.factor(query, first + column);
        }
        total[i] = total[i] * correction + group_reduce(more, 16, plus);
        top[i] = most;
        VESTA_UNROLL
        for (int j = 0; j < wide / 16; ++j) sum[i][j] = sum[i][j] * correction;
      }
      add_weighted<m, wide>(sum, memory, weights, v, first, end - first < n ? int(end - first) : n, part.column);
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
  using Pack = Elements<C, 4>;
  constexpr int n = kScores<C>, N = n / 16;
  constexpr bool by_key = of != GradientOf::query;
  constexpr int kMemory = attention_memory<C>(n, wide), kWeights = n * (n + kPad) / 4;
  VESTA_SHARED(Pack, memory_packs, kMemory);
  VESTA_SHARED(Pack, weight_packs, kWeights);
  C *memory = memory_packs[0].v, *weights = weight_packs[0].v;
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  const int64_t own_rows = by_key ? l.keys : l.queries, heads = by_key ? l.heads / l.group : l.heads;
  const int64_t columns = of == GradientOf::value ? l.value_size : l.key_size;
  for (int64_t number = blockIdx.x; number < parts; number += gridDim.x) {
    const AttentionPart part(number, heads, own_rows, n, columns, wide, !by_key);
    C sum[N][wide / 16] = {};
    const int64_t first_head = by_key ? part.head * l.group : part.head, shared_head = first_head / l.group;
    const HeadRows<T> k(l.k, part.batch, shared_head, l.keys, l.key_size);
    const HeadRows<T> v(l.v, part.batch, shared_head, l.keys, l.value_size);
    for (int64_t head = first_head; head < first_head + (by_key ? l.group : 1); ++head) {
      const HeadRows<T> q(l.q, part.batch, head, l.queries, l.key_size, C(l.scale));
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
        if constexpr (by_key) add_products<n, n>(score, memory, k, part.row, q, first);
        else add_products<n, n>(score, memory, q, part.row, k, first);
        if constexpr (of == GradientOf::key) add_products<n, n>(of_weight, memory, v, part.row, g, first);
        if constexpr (of == GradientOf::query) add_products<n, n>(of_weight, memory, g, part.row, v, first);
        VESTA_UNROLL
        for (int at = 0; at < N * N; ++at) {  // neighbouring keys follow each other
          const int i = by_key ? at % N : at / N, j = by_key ? at / N : at % N;
          const int row = ty * N + i, column = tx * N + j;
          const int64_t own = part.row + row, other = first + column;
          const int64_t query = by_key ? other : own, key = by_key ? own : other;
          const bool exists = query < l.queries;
          const C weight = math::exp(seen.masked(score[i][j], query, key) - (exists ? top[query] : C(0)));
          const C factor = kept.factor(query, key);
          weights[column * (n + kPad) + row] =
              of == GradientOf::value ? weight * factor
                                      : weight * (of_weight[i][j] * factor - (exists ? inner[query] : C(0)));
        }
        const int count = end - first < n ? int(end - first) : n;
        const HeadRows<T>& rows = of == GradientOf::query ? k : of == GradientOf::key ? q : g;
        add_weighted<n, wide>(sum, memory, weights, rows, first, count, part.column);
      }
    }
    const AttentionOperand& to = of == GradientOf::query ? l.of_q : of == GradientOf::key ? l.of_k : l.of_v;
    const C factor = of == GradientOf::query ? C(l.scale) : C(1);
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
