// Fused attention for heads of any size and for numbers that tensor cores do not sum: products by ordinary arithmetic
// on tiles in shared memory (attention_tiles.cuh). A block owns a tile of rows and a piece of the columns of the
// result. The gradient has a kernel for each operand: rows of queries walk over keys, those of keys and of values over
// queries.
#pragma once
#include <vesta/cuda/kernels/attention_tiles.cuh>

namespace vesta::cuda {
namespace {

template <class T, int m, int wide>
VESTA_KERNEL void VESTA_BOUNDS(kAttentionThreads, wide == 64 ? 2 : 1)
    attention_kernel(AttentionLaunch l, AttentionPart::Cut cut) {
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
  for (int64_t number = blockIdx.x; number < cut.count(); number += gridDim.x) {
    const AttentionPart part(number, cut, l.causal ? AttentionPart::last_most : AttentionPart::even);
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
    // scores that are NaN make the total NaN
    const auto blind = [&](int i) { return total[i] == 0; };  // every score is -inf
    store_sums<m, wide>(sum, HeadRows<T>(l.out, part.batch, part.head, l.queries, l.value_size), part.row, part.column,
                        [&](int i, C s) { return blind(i) ? s : s / total[i]; });  // zeros, but for NaN values
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
VESTA_KERNEL void VESTA_BOUNDS(kAttentionThreads, 1)
    attention_backward_kernel(AttentionLaunch l, AttentionPart::Cut cut) {
  using C = compute_of<T>;
  constexpr int n = kScores<C>, N = n / 16;
  constexpr bool by_key = of != GradientOf::query;
  using Tiles = AttentionTiles<T, n, wide>;
  using Memory = typename Tiles::Memory;
  VESTA_SHARED(Memory, memory, 1);
  const Tiles tiles{memory[0]};
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  const C scale = C(l.scale);
  for (int64_t number = blockIdx.x; number < cut.count(); number += gridDim.x) {
    const AttentionPart part(number, cut,
                             !l.causal ? AttentionPart::even
                             : by_key  ? AttentionPart::first_most
                                       : AttentionPart::last_most);
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
    store_sums<n, wide>(sum, HeadRows<T>(to, part.batch, part.head, cut.rows, cut.columns), part.row, part.column,
                        [&](int, C s) { return s * factor; });
  }
}

template <class T, int m, int wide>
void queue_forward(const AttentionLaunch& l) {
  queue_attention("attention", attention_kernel<T, m, wide>, l, {l.batch, l.heads, l.queries, l.value_size, m, wide},
                  kAttentionThreads);
}

template <class T, GradientOf of, int wide>
void queue_backward(const AttentionLaunch& l) {
  constexpr bool by_key = of != GradientOf::query;
  const int64_t heads = by_key ? l.heads / l.group : l.heads, rows = by_key ? l.keys : l.queries;
  const int64_t columns = of == GradientOf::value ? l.value_size : l.key_size;
  queue_attention("attention_backward", attention_backward_kernel<T, of, wide>, l,
                  {l.batch, heads, rows, columns, kScores<compute_of<T>>, wide}, kAttentionThreads);
}

/// Runs f<64>() or f<128>(): how many columns of the result a block sums. Numbers for which tensor cores compute narrow
/// heads come here with wide ones only.
template <class T, class F>
void with_columns(int64_t columns, F f) {
  if constexpr (sizeof(T) == 8) {
    if (columns <= 64) return f.template operator()<64>();
  }
  f.template operator()<128>();
}

/// Computes the forward pass of heads of any size.
template <class T>
void run_forward(const AttentionLaunch& l) {
  with_columns<T>(l.value_size, [&]<int wide>() {
    // few queries (text that is generated word by word) leave most rows of a large tile empty
    if (l.queries <= 16) queue_forward<T, 16, wide>(l);
    else queue_forward<T, kScores<compute_of<T>>, wide>(l);
  });
}

/// Computes the gradient, `inner` being there.
template <class T>
void run_backward(const AttentionLaunch& l) {
  with_columns<T>(l.key_size, [&]<int wide>() {
    queue_backward<T, GradientOf::query, wide>(l);
    queue_backward<T, GradientOf::key, wide>(l);
  });
  with_columns<T>(l.value_size, [&]<int wide>() { queue_backward<T, GradientOf::value, wide>(l); });
}

}  // namespace
}  // namespace vesta::cuda
