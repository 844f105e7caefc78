// The kernels of fused attention by tensor cores (attention_warps.cuh; Dao, "FlashAttention-2", 2023): scores stay in the
// registers of the warp that computes them. A block of four warps owns 64 rows, 16 a warp, and walks over the other side's
// rows in tiles of 8 KB, of two operands: while it computes with one pair, the next is loaded. One kernel forward; of the
// gradient, one for queries, which walks over keys, and one for keys and values together, which walks over queries.
#pragma once
#include <vesta/cuda/kernels/attention_warps.cuh>

namespace vesta::cuda {
namespace {

constexpr int kFusedThreads = 32 * kWarps;
constexpr int kFusedRows = kWarps * kWarpRows;

/// Computes the result. `few`: of at most 16 queries, which the warps share: each computes some columns of the scores, then of
/// the result.
template <class T, int D, bool few>
VESTA_KERNEL void VESTA_BOUNDS(kFusedThreads, 2) fused_attention_kernel(AttentionLaunch l, AttentionPart::Cut cut) {
  using Tiles = WarpTiles<T, D>;
  constexpr int n = Tiles::kRows, N = Tiles::N;
  VESTA_DYNAMIC_SHARED(char, memory);
  const int warp = int(warp_index()), g = int(lane_index() / 4), t = int(lane_index() % 4);
  const float scale = float(l.scale);
  const auto largest = [](float a, float b) { return b > a ? b : a; };  // NaN is found in the sum
  const auto mine = [&](int piece) { return !few || piece % kWarps == warp; };
  for (int64_t number = blockIdx.x; number < cut.count(); number += gridDim.x) {
    const AttentionPart part(number, cut, l.causal ? AttentionPart::last_most : AttentionPart::even);
    const int64_t shared_head = part.head / l.group, first_row = part.row + (few ? 0 : warp * kWarpRows);
    const HeadRows<T> q(l.q, part.batch, part.head, l.queries, l.key_size);
    const HeadRows<T> k(l.k, part.batch, shared_head, l.keys, l.key_size);
    const HeadRows<T> v(l.v, part.batch, shared_head, l.keys, l.value_size);
    const HeadRows<T> out(l.out, part.batch, part.head, l.queries, l.value_size);
    const Seen<T> seen(l, part.batch, part.head);
    Kept<float> kept(l, part.batch, part.head);
    const int64_t end = l.causal && part.row + cut.tile < l.keys ? part.row + cut.tile : l.keys;
    const auto start = [&](int stage, int64_t first) {
      Tiles::template start<n>(memory + stage * 2 * kTileBytes, k, first);
      Tiles::template start<n>(memory + stage * 2 * kTileBytes + kTileBytes, v, first);
    };
    block_barrier();  // what was there before has been read
    start(0, 0);
    Chunk own[Tiles::kChunks][2];
    VESTA_UNROLL
    for (int j = 0; j < Tiles::kChunks; ++j) {
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) own[j][i] = load_chunk(q, first_row + g + 8 * i, (4 * j + t) * (16 / int(sizeof(T))));
    }
    const auto of_queries = [&](int j, Chunk(&x)[2]) { x[0] = own[j][0], x[1] = own[j][1]; };
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {}, sum[Tiles::kSums][4] = {};
    int stage = 0;
    for (int64_t first = 0; first < end; first += n, stage ^= 1) {
      const char *keys = memory + stage * 2 * kTileBytes, *values = keys + kTileBytes;
      wait_copies();
      block_barrier();  // these tiles are there, and the last ones have been read
      if (first + n < end) start(stage ^ 1, first + n);
      const int64_t last_row = first_row + kWarpRows - 1;
      if (!few && (first_row >= l.queries || (l.causal && first > last_row))) continue;
      float score[N][4];
      if constexpr (few) {
        using Scores = Elements<float, 4>;
        VESTA_SHARED(Scores, products, N * 32);
        for (int i = warp; i < N; i += kWarps) {
          float some[1][4];
          Tiles::multiply(some, of_queries, keys + i * 8 * Tiles::kRowBytes);
          products[i * 32 + int(lane_index())] = {some[0][0], some[0][1], some[0][2], some[0][3]};
        }
        block_barrier();
        VESTA_UNROLL
        for (int i = 0; i < N; ++i) {
          const Scores all = products[i * 32 + int(lane_index())];
          VESTA_UNROLL
          for (int e = 0; e < 4; ++e) score[i][e] = all.v[e];
        }
      } else {
        Tiles::multiply(score, of_queries, keys);
      }
      const int64_t row = first_row + g, column = first + 2 * t;
      const bool whole = last_row < l.queries && first + n <= l.keys && !(l.causal && first + n - 1 > first_row);
      mask_scores<false>(score, seen, scale, row, column, whole);
      const uint32_t keep = kept_weights<false, N>(kept, row, column);
      float most[2] = {top[0], top[1]}, shift[2], correction[2], more[2] = {};
      VESTA_UNROLL
      for (int i = 0; i < N; ++i) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) most[e / 2] = largest(most[e / 2], score[i][e]);
      }
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) {
        most[i] = group_reduce(most[i], 4, largest);
        shift[i] = finite_top(most[i]);
        correction[i] = fast_exp2((top[i] - shift[i]) * kLog2e);
        top[i] = most[i];
      }
      VESTA_UNROLL
      for (int i = 0; i < N; ++i) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float weight = fast_exp2((score[i][e] - shift[e / 2]) * kLog2e);
          more[e / 2] = more[e / 2] + weight;
          score[i][e] = weight;
          if (kept.on) score[i][e] = keep >> (4 * i + e) & 1 ? weight * kept.scale : 0;
        }
      }
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) total[i] = total[i] * correction[i] + more[i];
      Tiles::add_weighted(sum, score, values, correction, mine);
    }
    bool blind[2], exists[2], bad[2] = {};
    float* tops = static_cast<float*>(l.top) + (part.batch * l.heads + part.head) * l.queries;
    VESTA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int64_t query = first_row + g + 8 * i;
      total[i] = group_reduce(total[i], 4, [](float a, float b) { return a + b; });
      exists[i] = query < l.queries, blind[i] = l.mask.kind != AttentionMask::none && top[i] == -INFINITY;
      if (exists[i] && t == 0 && (!few || warp == 0)) {
        tops[query] = blind[i] ? INFINITY : finite_top(top[i]) + math::log(total[i]);
      }
    }
    Tiles::each(sum, [&]<int count>(int piece, int i, int column, const float(&s)[count]) {
      if (!exists[i] || !mine(piece)) return;
      float y[count];
      VESTA_UNROLL
      for (int c = 0; c < count; ++c) {
        y[c] = blind[i] ? 0 : s[c] / total[i];
        bad[i] = bad[i] || (y[c] != y[c] && column + c < out.columns);
      }
      store_columns<count>(out.data + (first_row + g + 8 * i) * out.stride, column, out.columns, out.packed, y);
    });
    each_bad_row(bad, [&](int r) {
      const int64_t query = first_row + r, seen_end = l.causal && query + 1 < end ? query + 1 : end;
      const auto score_of = [&](int64_t key) { return seen.masked(row_product(q, query, k, key) * scale, query, key); };
      ExpSum<float> all{-INFINITY, 0};
      for (int64_t key = int64_t(lane_index()); key < seen_end; key += 32) {
        all = combine_exp_sums(all, ExpSum<float>{score_of(key), 1});
      }
      all = group_reduce(all, 32, [](const ExpSum<float>& a, const ExpSum<float>& b) { return combine_exp_sums(a, b); });
      float again[D / 32] = {};
      add_rows(again, v, 0, seen_end, [&](int64_t key) {
        return math::exp(score_of(key) - finite_top(all.top)) * kept.factor(query, key);
      });
      if (lane_index() == 0 && (!few || warp == 0)) tops[query] = finite_top(all.top) + math::log(all.sum);
      VESTA_UNROLL
      for (int c = 0; c < D / 32; ++c) {
        const int64_t column = int64_t(lane_index()) + 32 * c;
        if (column < out.columns && mine(int(column) / Tiles::kPiece)) {
          out.data[query * out.stride + column] = convert<T>(again[c] / all.sum);
        }
      }
    });
  }
}

/// Computes the gradient of keys and values (by_key) or of queries.
template <class T, int D, bool by_key>
VESTA_KERNEL void VESTA_BOUNDS(kFusedThreads, 2) fused_gradient_kernel(AttentionLaunch l, AttentionPart::Cut cut) {
  using Tiles = WarpTiles<T, D>;
  constexpr int n = Tiles::kRows, N = Tiles::N, kOwnBytes = kFusedRows * Tiles::kRowBytes;
  VESTA_DYNAMIC_SHARED(char, memory);  // two operands' own rows, two pairs of tiles, two tiles of `top` and `inner`
  char* const stages = memory + 2 * kOwnBytes;
  float* const numbers = reinterpret_cast<float*>(stages + 4 * kTileBytes);
  const int warp = int(warp_index()), g = int(lane_index() / 4), t = int(lane_index() % 4);
  const float scale = float(l.scale);
  for (int64_t number = blockIdx.x; number < cut.count(); number += gridDim.x) {
    const auto order = !l.causal ? AttentionPart::even : by_key ? AttentionPart::first_most : AttentionPart::last_most;
    const AttentionPart part(number, cut, order);
    const int64_t first_row = part.row + warp * kWarpRows, last_row = first_row + kWarpRows - 1;
    const int64_t first_head = by_key ? part.head * l.group : part.head, shared_head = first_head / l.group;
    const HeadRows<T> k(l.k, part.batch, shared_head, l.keys, l.key_size);
    const HeadRows<T> v(l.v, part.batch, shared_head, l.keys, l.value_size);
    const int64_t begin = by_key && l.causal ? part.row : 0;  // of the first query that sees these keys
    const int64_t others = by_key ? l.queries : l.keys;
    const int64_t end = !by_key && l.causal && part.row + kFusedRows < others ? part.row + kFusedRows : others;
    float sum[Tiles::kSums][4] = {}, of_values[by_key ? Tiles::kSums : 1][4] = {};
    // Computes a weight and its gradient again, for rows with infinite factors.
    const auto pair_at = [&](int64_t head, int64_t query, int64_t key, bool of_weight) {
      const HeadRows<T> q(l.q, part.batch, head, l.queries, l.key_size);
      const HeadRows<T> grad(l.grad, part.batch, head, l.queries, l.value_size);
      const int64_t at = (part.batch * l.heads + head) * l.queries + query;
      const float s = Seen<T>(l, part.batch, head).masked(row_product(q, query, k, key) * scale, query, key);
      const float weight = math::exp(s - static_cast<const float*>(l.top)[at]);
      const float factor = Kept<float>(l, part.batch, head).factor(query, key);
      if (!of_weight) return weight * factor;
      return weight * (row_product(grad, query, v, key) * factor - static_cast<const float*>(l.inner)[at]);
    };
    block_barrier();  // what was there before has been read
    if constexpr (by_key) {
      Tiles::template start<kFusedRows>(memory, k, part.row);
      Tiles::template start<kFusedRows>(memory + kOwnBytes, v, part.row);
    }
    for (int64_t head = first_head; head < first_head + (by_key ? l.group : 1); ++head) {
      const HeadRows<T> q(l.q, part.batch, head, l.queries, l.key_size);
      const HeadRows<T> grad(l.grad, part.batch, head, l.queries, l.value_size);
      const Seen<T> seen(l, part.batch, head);
      Kept<float> kept(l, part.batch, head);
      const int64_t of_head = (part.batch * l.heads + head) * l.queries;
      const float* const top = static_cast<const float*>(l.top) + of_head;
      const float* const inner = static_cast<const float*>(l.inner) + of_head;
      const auto start = [&](int stage, int64_t first) {
        char* to = stages + stage * 2 * kTileBytes;
        Tiles::template start<n>(to, by_key ? q : k, first);
        Tiles::template start<n>(to + kTileBytes, by_key ? grad : v, first);
        if constexpr (by_key) {
          static_assert(2 * n <= kFusedThreads);
          const int at = int(threadIdx.x) % n;
          if (int(threadIdx.x) < 2 * n) {
            const float* from = int(threadIdx.x) < n ? top : inner;
            const bool exists = first + at < l.queries;
            start_copy<4>(numbers + stage * 2 * n + int(threadIdx.x), exists ? from + first + at : from, exists ? 4 : 0);
          }
        }
      };
      if constexpr (!by_key) {
        Tiles::template start<kFusedRows>(memory, q, part.row);
        Tiles::template start<kFusedRows>(memory + kOwnBytes, grad, part.row);
      } else {
        if (head > first_head) block_barrier();  // the last head's tiles have been read
      }
      if (begin < end) start(0, begin);
      float own_top[2] = {}, own_inner[2] = {};
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int64_t query = first_row + g + 8 * i;
        if (!by_key && query < l.queries) own_top[i] = top[query], own_inner[i] = inner[query];
      }
      int stage = 0;
      for (int64_t first = begin; first < end; first += n, stage ^= 1) {
        const char *tile = stages + stage * 2 * kTileBytes, *second = tile + kTileBytes;
        wait_copies();
        block_barrier();  // these tiles are there, and the last ones have been read
        if (first + n < end) start(stage ^ 1, first + n);
        const int64_t last = first + n - 1;
        if (first_row >= cut.rows || (l.causal && (by_key ? last < first_row : first > last_row))) continue;
        const auto own = [&](const char* rows) {
          return [rows](int j, Chunk(&x)[2]) {
            x[0] = Tiles::chunk(rows, j), x[1] = Tiles::chunk(rows + 8 * Tiles::kRowBytes, j);
          };
        };
        const char* mine = memory + warp * kWarpRows * Tiles::kRowBytes;
        const int64_t row = first_row + g, column = first + 2 * t;
        const bool whole =
            last_row < cut.rows && last < others && !(l.causal && (by_key ? last_row > first : last > first_row));
        float score[N][4], of_weight[N][4];
        Tiles::multiply(score, own(mine), tile);
        mask_scores<by_key>(score, seen, scale, row, column, whole);
        const uint32_t keep = kept_weights<by_key, N>(kept, row, column);
        const float* its = numbers + stage * 2 * n + 2 * t;  // `top` of the lane's first query, and n further, `inner`
        VESTA_UNROLL
        for (int i = 0; i < N; ++i) {
          VESTA_UNROLL
          for (int e = 0; e < 4; ++e) {
            score[i][e] = fast_exp2((score[i][e] - (by_key ? its[8 * i + e % 2] : own_top[e / 2])) * kLog2e);
          }
        }
        if constexpr (by_key) {
          float weight[N][4];
          VESTA_UNROLL
          for (int i = 0; i < N; ++i) {
            VESTA_UNROLL
            for (int e = 0; e < 4; ++e) {
              weight[i][e] = score[i][e];
              if (kept.on) weight[i][e] = keep >> (4 * i + e) & 1 ? score[i][e] * kept.scale : 0;
            }
          }
          Tiles::add_weighted(of_values, weight, second);
        }
        Tiles::multiply(of_weight, own(mine + kOwnBytes), second);
        VESTA_UNROLL
        for (int i = 0; i < N; ++i) {
          VESTA_UNROLL
          for (int e = 0; e < 4; ++e) {
            if (kept.on) of_weight[i][e] = keep >> (4 * i + e) & 1 ? of_weight[i][e] * kept.scale : 0;
            score[i][e] =
                score[i][e] * (of_weight[i][e] - (by_key ? its[n + 8 * i + e % 2] : own_inner[e / 2]));
          }
        }
        Tiles::add_weighted(sum, score, tile);
      }
    }
    /// Stores sums times `factor`, those that are NaN computed again as sums of weight(head, row, other) times `rows` of each head.
    const auto store = [&](const float(&sums)[Tiles::kSums][4], const AttentionOperand& operand, int64_t columns,
                           float factor, const AttentionOperand& rows, bool of_weight) {
      const HeadRows<T> to(operand, part.batch, part.head, cut.rows, columns);
      bool bad[2] = {};
      Tiles::each(sums, [&]<int count>(int, int i, int column, const float(&s)[count]) {
        const int64_t row = first_row + g + 8 * i;
        if (row >= cut.rows) return;
        float y[count];
        VESTA_UNROLL
        for (int c = 0; c < count; ++c) {
          y[c] = s[c] * factor;
          bad[i] = bad[i] || (y[c] != y[c] && column + c < columns);
        }
        store_columns<count>(to.data + row * to.stride, column, columns, to.packed, y);
      });
      each_bad_row(bad, [&](int r) {
        const int64_t row = first_row + r;
        const int64_t from = by_key && l.causal ? row : 0, until = !by_key && l.causal && row + 1 < end ? row + 1 : end;
        float again[D / 32] = {};
        for (int64_t head = first_head; head < first_head + (by_key ? l.group : 1); ++head) {
          const HeadRows<T> of(rows, part.batch, by_key ? head : shared_head, others, columns);
          add_rows(again, of, from, until, [&](int64_t other) {
            return pair_at(head, by_key ? other : row, by_key ? row : other, of_weight);
          });
        }
        VESTA_UNROLL
        for (int c = 0; c < D / 32; ++c) {
          const int64_t column = int64_t(lane_index()) + 32 * c;
          if (column < columns) to.data[row * to.stride + column] = convert<T>(again[c] * factor);
        }
      });
    };
    store(sum, by_key ? l.of_k : l.of_q, l.key_size, scale, by_key ? l.q : l.k, true);
    if constexpr (by_key) store(of_values, l.of_v, l.value_size, 1, l.grad, false);
  }
}

/// Runs f<64>() or f<128>(): the columns of a tile; returns false for wider heads.
template <class F>
bool with_tiles(const AttentionLaunch& l, F f) {
  const int64_t columns = l.key_size > l.value_size ? l.key_size : l.value_size;
  if (columns <= 64) f.template operator()<64>();
  else if (columns <= 128) f.template operator()<128>();
  return columns <= 128;
}

template <class T, int D, bool few>
void queue_fused(const AttentionLaunch& l) {
  const AttentionPart::Cut cut{l.batch, l.heads, l.queries, 1, few ? kWarpRows : kFusedRows, 1};
  queue_attention("attention", fused_attention_kernel<T, D, few>, l, cut, kFusedThreads, 4 * kTileBytes);
}
template <class T, int D, bool by_key>
void queue_fused_gradient(const AttentionLaunch& l) {
  using Tiles = WarpTiles<T, D>;
  const int64_t heads = by_key ? l.heads / l.group : l.heads, rows = by_key ? l.keys : l.queries;
  constexpr int bytes = 2 * kFusedRows * Tiles::kRowBytes + 4 * kTileBytes + 4 * Tiles::kRows * int(sizeof(float));
  queue_attention("attention_gradient", fused_gradient_kernel<T, D, by_key>, l,
                  {l.batch, heads, rows, 1, kFusedRows, 1}, kFusedThreads, unsigned(bytes));
}

/// Computes the forward pass; returns false, and does nothing, for heads that are too wide.
template <class T>
bool run_fused(const AttentionLaunch& l) {
  return with_tiles(l, [&]<int D>() {
    if (l.queries <= kWarpRows) queue_fused<T, D, true>(l);
    else queue_fused<T, D, false>(l);
  });
}
/// Computes the gradient likewise, `inner` being there.
template <class T>
bool run_fused_gradient(const AttentionLaunch& l) {
  return with_tiles(l, [&]<int D>() {
    queue_fused_gradient<T, D, false>(l);
    queue_fused_gradient<T, D, true>(l);
  });
}

}  // namespace
}  // namespace vesta::cuda
