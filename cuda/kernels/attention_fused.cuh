// The kernels of fused attention by tensor cores (attention_warps.cuh; Dao, "FlashAttention-2", 2023): scores stay in
// the registers of the warp that computes them. A block of four warps owns 64 rows, 16 a warp, and walks over the other
// side's rows in tiles of 8 KB, of two operands: while it computes with one pair, the next is loaded. One kernel
// forward, and of few queries and many keys another, which joins the results of ranges of keys; of the gradient, one
// for queries, which walks over keys, and one for keys and values together, which walks over queries.
#pragma once
#include <vesta/cuda/kernels/attention_warps.cuh>

namespace vesta::cuda {
namespace {

/// Computes a query's result again. `piece`, `step`: the warp stores the columns of pieces `piece`, `piece` + `step`
/// and on.
template <class T, int width>
VESTA_CALLED void attend_again(const AttentionLaunch& l, int64_t batch, int64_t head, int64_t query, int piece,
                               int step) {
  AgainHead<T> at(l, batch, head);
  const int64_t lane = int64_t(lane_index()), end = l.causal && query + 1 < l.keys ? query + 1 : l.keys;
  ExpSum<float> all{-INFINITY, 0};
  for (int64_t key = lane; key < end; key += 32) {
    all = combine_exp_sums(all, ExpSum<float>{at.score(query, key), 1});
  }
  all = group_reduce(all, 32, [](const ExpSum<float>& a, const ExpSum<float>& b) { return combine_exp_sums(a, b); });
  const bool blind = all.top == -INFINITY;
  const HeadRows<T> out(l.out, batch, head, l.queries, l.value_size);
  for (int64_t first = 0; first < out.columns; first += 32) {
    const int64_t column = first + lane;
    const float sum =
        sum_of_rows(at.v, column, 0, end, [&](int64_t key) { return at.weight(query, key, finite_top(all.top)); });
    const bool mine = int(column / width) % step == piece;
    if (column < out.columns && mine) {
      out.data[query * out.stride + column] = convert<T>(blind ? sum : sum / all.sum);
    }
  }
  float* tops = static_cast<float*>(l.top) + (batch * l.heads + head) * l.queries;
  if (lane == 0 && piece == 0) tops[query] = blind ? INFINITY : finite_top(all.top) + math::log(all.sum);
}

enum class Gradient { query, key, value };

/// Computes a row of a gradient again.
template <class T, Gradient of>
VESTA_CALLED void differentiate_again(const AttentionLaunch& l, int64_t batch, int64_t head, int64_t row) {
  constexpr bool by_key = of != Gradient::query;
  const AttentionOperand& to = of == Gradient::query ? l.of_q : of == Gradient::key ? l.of_k : l.of_v;
  const int64_t columns = of == Gradient::value ? l.value_size : l.key_size;
  const int64_t heads = by_key ? l.group : 1, first_head = head * heads;
  const int64_t begin = by_key && l.causal ? row : 0, others = by_key ? l.queries : l.keys;
  const int64_t end = !by_key && l.causal && row + 1 < others ? row + 1 : others;
  const HeadRows<T> sums(to, batch, head, by_key ? l.keys : l.queries, columns);
  for (int64_t first = 0; first < columns; first += 32) {
    const int64_t column = first + int64_t(lane_index());
    float sum = 0;
    for (int64_t h = first_head; h < first_head + heads; ++h) {
      AgainHead<T> at(l, batch, h);
      const HeadRows<T>& rows = of == Gradient::query ? at.k : of == Gradient::key ? at.q : at.grad;
      sum = sum + sum_of_rows(rows, column, begin, end, [&](int64_t other) {
              const int64_t query = by_key ? other : row, key = by_key ? row : other;
              return of == Gradient::value ? at.weight(query, key, at.top[query]) : at.gradient(query, key);
            });
    }
    const float factor = of == Gradient::value ? 1 : float(l.scale);
    if (column < columns) sums.data[row * sums.stride + column] = convert<T>(sum * factor);
  }
}

/// Stores what a block of few queries has of them: the sums of weighted values, then the largest score and the sum of
/// weights.
template <class Tiles, class Mine>
VESTA_DEVICE void store_part(const AttentionLaunch& l, int64_t part, int first_row, const float (&sum)[Tiles::kSums][4],
                             const float (&top)[2], const float (&total)[2], Mine mine) {
  const int row = first_row + 2 * int(lane_index() / 4);
  float* const to = l.parts + (part * l.queries + row) * (l.value_size + 2);
  Tiles::each(sum, [&]<int count>(int piece, int i, int column, const float (&s)[count]) {
    if (row + i >= l.queries || !mine(piece)) return;
    VESTA_UNROLL
    for (int c = 0; c < count; ++c) {
      if (column + c < l.value_size) to[i * (l.value_size + 2) + column + c] = s[c];
    }
  });
  VESTA_UNROLL
  for (int i = 0; i < 2; ++i) {
    if (row + i >= l.queries || lane_index() % 4 != 0 || warp_index() != 0) continue;
    float* const numbers = to + i * (l.value_size + 2) + l.value_size;
    numbers[0] = top[i], numbers[1] = total[i];
  }
}

/// Joins the parts of few queries' results, in order: a warp has 32 columns of a query.
template <class T>
VESTA_KERNEL void attention_ranges_kernel(VESTA_PARAMETER AttentionLaunch l, int64_t warps, int ranges) {
  const GroupTeam team(32);
  if (int64_t(team.row) >= warps) return;  // the whole warp
  const int64_t pieces = (l.value_size + 31) / 32, piece = int64_t(team.row) % pieces,
                number = int64_t(team.row) / pieces;
  const int64_t query = number % l.queries, of_all = number / l.queries, batch = of_all / l.heads;
  const int64_t head = of_all % l.heads, step = l.queries * (l.value_size + 2);
  const float* const from = l.parts + (of_all * ranges * l.queries + query) * (l.value_size + 2);
  const int lane = int(lane_index());
  const int64_t column = piece * 32 + lane;
  const bool inside = column < l.value_size;
  float top = -INFINITY, total = 0, sum = 0;
  for (int r = lane; r < ranges; r += 32) top = ::fmaxf(top, from[r * step + l.value_size]);
  top = group_reduce(top, 32, [](float a, float b) { return ::fmaxf(a, b); });
  for (int first = 0; first < ranges; first += 32) {
    float factor = 0, its_total = 0;
    if (first + lane < ranges) {
      const float* const numbers = from + (first + lane) * step + l.value_size;
      factor = top == -INFINITY ? 1 : math::exp(numbers[0] - top), its_total = numbers[1] * factor;
    }
    for (int r = 0; r < 32 && first + r < ranges; r += 8) {
      float x[8];
      VESTA_UNROLL
      for (int k = 0; k < 8; ++k) x[k] = inside && first + r + k < ranges ? from[(first + r + k) * step + column] : 0;
      VESTA_UNROLL
      for (int k = 0; k < 8; ++k) {
        sum = multiply_add(x[k], shuffle(factor, unsigned(r + k)), sum);
        total = total + shuffle(its_total, unsigned(r + k));
      }
    }
  }
  const bool blind = total == 0;
  const float y = blind ? sum : sum / total;
  if (inside)
    static_cast<T*>(l.out.data)[batch * l.out.batch + head * l.out.head + query * l.out.row + column] = convert<T>(y);
  if (piece == 0 && lane == 0) {
    static_cast<float*>(l.top)[number] = blind ? INFINITY : finite_top(top) + math::log(total);
  }
  if (any_lane(inside && y != y)) attend_again<T, 32>(l, batch, head, query, int(piece), int(pieces));
}

/// Computes the result. `few`: of at most 16 queries, which the warps share: each computes some columns of the scores,
/// then of the result; and of a range of the keys, if there are `parts`.
template <class T, int D, bool few>
VESTA_KERNEL void VESTA_BOUNDS(kFusedThreads, D == 64 ? 3 : 2)
    fused_attention_kernel(VESTA_PARAMETER AttentionLaunch l, VESTA_PARAMETER AttentionPart::Cut cut) {
  using Tiles = WarpTiles<T, D>;
  constexpr int n = Tiles::kRows, N = Tiles::N;
  VESTA_DYNAMIC_SHARED(char, memory);  // rows of queries, two pairs of tiles; of few queries, products
  StepRows* const own = reinterpret_cast<StepRows*>(memory) + threadIdx.x;  // nobody else's
  char* const stages = memory + Tiles::kOwnBytes;
  const int warp = int(warp_index()), g = int(lane_index() / 4), t = int(lane_index() % 4);
  const int queries = int(l.queries), keys = int(l.keys);
  const auto largest = [](float a, float b) { return ::fmaxf(a, b); };  // not NaN, which is found in the sum
  const auto mine = [&](int piece) { return !few || piece % kWarps == warp; };
  const AttentionPart part(blockIdx.x, cut, l.causal ? AttentionPart::last_most : AttentionPart::even);
  const int batch = int(part.batch), head = int(part.head);
  const int part_row = int(part.row), first_row = part_row + (few ? 0 : warp * kWarpRows);
  const HeadRows<T> k(l.k, batch, head / int(l.group), l.keys, l.key_size);
  const HeadRows<T> v(l.v, batch, head / int(l.group), l.keys, l.value_size);
  const int begin = few ? int(part.column) : 0,
            seen = l.causal && part_row + cut.tile < keys ? part_row + cut.tile : keys;
  const int end = few && begin + cut.wide < seen ? begin + cut.wide : seen;
  const auto start = [&](int stage, int first) {
    Tiles::template start<n>(stages + stage * 2 * kTileBytes, k, first);
    Tiles::template start<n>(stages + stage * 2 * kTileBytes + kTileBytes, v, first);
  };
  start(0, begin);
  Tiles::load_own(own, HeadRows<T>(l.q, batch, head, l.queries, l.key_size), first_row);
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {}, sum[Tiles::kSums][4] = {};
  ScorePlaces<false> at(l, batch, head, first_row + 2 * g);
  int stage = 0;
  for (int first = begin; first < end; first += n, stage ^= 1) {
    const char* tile = stages + stage * 2 * kTileBytes;
    wait_copies();
    block_barrier();  // these tiles are there, and the last ones have been read
    if (first + n < end) start(stage ^ 1, first + n);
    const int last_row = first_row + kWarpRows - 1;
    if (!few && (first_row >= queries || (l.causal && first > last_row))) continue;
    const bool whole = last_row < queries && first + n <= keys && !(l.causal && first + n - 1 > first_row);
    at.column = first + t * Tiles::kQuarter, at.inside = first + n <= keys, at.whole = whole;
    uint32_t mask[N * int(sizeof(T))];
    at.load_mask<T, N>(mask);
    float score[N][4];
    if constexpr (few) {
      using Scores = Elements<float, 4>;
      Scores* const products = reinterpret_cast<Scores*>(stages + 4 * kTileBytes);
      for (int i = warp; i < N; i += kWarps) {
        float some[1][4];
        Tiles::multiply(some, own, tile + 2 * i * Tiles::kRowBytes);
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
      Tiles::multiply(score, own, tile);
    }
    float correction[2] = {1, 1};
    if (few || at.shows<T, N>(mask)) {
      at.mask<T, N>(score, mask);
      float shift[2], more[2] = {};
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) {
        float most = top[i];
        VESTA_UNROLL
        for (int c = 0; c < N; ++c) most = largest(largest(most, score[c][2 * i]), score[c][2 * i + 1]);
        most = group_reduce(most, 4, largest);
        shift[i] = finite_top(most);
        const float down = -shift[i] * kLog2e, last = top[i] == -INFINITY ? INFINITY : -top[i] * kLog2e;
        correction[i] = fast_exp2(is_far(shift[i]) ? (top[i] - shift[i]) * kLog2e : down - last);
        top[i] = most;
      }
      exp_below(score, shift);
      VESTA_UNROLL
      for (int i = 0; i < N; ++i) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) more[e / 2] = more[e / 2] + score[i][e];
      }
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) {
        total[i] = multiply_add(total[i], correction[i], more[i]);
        compute_here(total[i]);
      }
      const KeptWeights<N> kept(at);
      kept.multiply(score);
    } else {  // weights of zero: only their products with the values are left, which may be NaN
      VESTA_UNROLL
      for (int k = 0; k < 4 * N; ++k) score[k / 4][k % 4] = 0;
    }
    Tiles::add_weighted(sum, score, tile + kTileBytes, correction, mine);
  }
  if (few && l.parts) {
    VESTA_UNROLL
    for (int i = 0; i < 2; ++i) total[i] = group_reduce(total[i], 4, [](float a, float b) { return a + b; });
    const int64_t number = (part.batch * l.heads + part.head) * cut.pieces() + part.column / cut.wide;
    store_part<Tiles>(l, number, first_row, sum, top, total, mine);
    return;
  }
  bool exists[2], bad[2] = {}, blind[2];
  float* tops = static_cast<float*>(l.top) + (batch * l.heads + head) * l.queries;
  VESTA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int query = first_row + 2 * g + i;
    total[i] = group_reduce(total[i], 4, [](float a, float b) { return a + b; });
    exists[i] = query < queries;
    blind[i] = total[i] == 0;  // every score is -inf; scores that are NaN make the total NaN
    if (exists[i] && t == 0 && (!few || warp == 0)) {
      tops[query] = blind[i] ? INFINITY : finite_top(top[i]) + math::log(total[i]);
    }
  }
  const HeadRows<T> out(l.out, batch, head, l.queries, l.value_size);
  Tiles::each(sum, [&]<int count>(int piece, int i, int column, const float (&s)[count]) {
    if (!exists[i] || !mine(piece)) return;
    float y[count];
    VESTA_UNROLL
    for (int c = 0; c < count; ++c) {
      y[c] = blind[i] ? s[c] : s[c] / total[i];  // zeros, but for values that are not finite
      bad[i] = bad[i] || (y[c] != y[c] && column + c < out.columns);
    }
    store_columns<count>(out.data + (first_row + 2 * g + i) * out.stride, column, out.columns, out.packed, y);
  });
  each_bad_row(bad, [&](int r) {
    attend_again<T, Tiles::kPiece>(l, batch, head, first_row + r, few ? warp : 0, few ? kWarps : 1);
  });
}

/// Stores sums times `factor`, and computes those again that are NaN.
template <class Tiles, Gradient of, class T>
VESTA_DEVICE void store_gradient(const float (&sum)[Tiles::kSums][4], const AttentionLaunch& l, int64_t batch,
                                 int64_t head, int first_row, const AttentionOperand& to, int64_t rows, int64_t columns,
                                 float factor) {
  const HeadRows<T> sums(to, batch, head, rows, columns);
  bool bad[2] = {};
  Tiles::each(sum, [&]<int count>(int, int i, int column, const float (&s)[count]) {
    const int row = first_row + 2 * int(lane_index() / 4) + i;
    if (row >= sums.rows) return;
    float y[count];
    VESTA_UNROLL
    for (int c = 0; c < count; ++c) {
      y[c] = s[c] * factor;
      bad[i] = bad[i] || (y[c] != y[c] && column + c < columns);
    }
    store_columns<count>(sums.data + row * sums.stride, column, columns, sums.packed, y);
  });
  each_bad_row(bad, [&](int r) { differentiate_again<T, of>(l, batch, head, first_row + r); });
}

/// Computes the gradient of keys and values (by_key) or of queries.
template <class T, int D, bool by_key>
VESTA_KERNEL void VESTA_BOUNDS(kFusedThreads, 2)
    fused_backward_kernel(VESTA_PARAMETER AttentionLaunch l, VESTA_PARAMETER AttentionPart::Cut cut) {
  using Tiles = WarpTiles<T, D>;
  constexpr int n = Tiles::kRows, N = Tiles::N;
  VESTA_DYNAMIC_SHARED(char, memory);  // two operands' own rows, two pairs of tiles, two tiles of `top` and `inner`
  StepRows* const own = reinterpret_cast<StepRows*>(memory) + threadIdx.x;  // nobody else's
  StepRows* const second_own = own + Tiles::kOwnBytes / int(sizeof(StepRows));
  char* const stages = memory + 2 * Tiles::kOwnBytes;
  float* const numbers = reinterpret_cast<float*>(stages + 4 * kTileBytes);
  const int warp = int(warp_index()), g = int(lane_index() / 4), t = int(lane_index() % 4);
  const int rows = int(cut.rows), others = int(by_key ? l.queries : l.keys);
  const auto order = !l.causal ? AttentionPart::even : by_key ? AttentionPart::first_most : AttentionPart::last_most;
  const AttentionPart part(blockIdx.x, cut, order);
  const int batch = int(part.batch), group = int(l.group);
  const int first_head = int(by_key ? part.head * l.group : part.head);
  const int part_row = int(part.row), first_row = part_row + warp * kWarpRows, last_row = first_row + kWarpRows - 1;
  const int begin = by_key && l.causal ? part_row : 0;  // of the first query that sees these keys
  const int end = !by_key && l.causal && part_row + kFusedRows < others ? part_row + kFusedRows : others;
  const AttentionOperand &first_rows = by_key ? l.k : l.q, &second_rows = by_key ? l.v : l.grad;
  Tiles::load_own(own, HeadRows<T>(first_rows, batch, int(part.head), rows, l.key_size), first_row);
  Tiles::load_own(second_own, HeadRows<T>(second_rows, batch, int(part.head), rows, l.value_size), first_row);
  float own_top[2] = {}, own_inner[2] = {};
  VESTA_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int query = first_row + 2 * g + i;
    const int64_t at = (batch * l.heads + part.head) * l.queries + query;
    if (by_key || query >= rows) continue;
    own_top[i] = static_cast<const float*>(l.top)[at], own_inner[i] = static_cast<const float*>(l.inner)[at];
  }
  float sum[Tiles::kSums][4] = {}, of_values[by_key ? Tiles::kSums : 1][4] = {};
  for (int head = first_head; head < first_head + (by_key ? group : 1); ++head) {
    const int other_head = by_key ? head : head / group;
    const HeadRows<T> a(by_key ? l.q : l.k, batch, other_head, others, l.key_size);
    const HeadRows<T> b(by_key ? l.grad : l.v, batch, other_head, others, l.value_size);
    const auto start = [&](int stage, int first) {
      char* to = stages + stage * 2 * kTileBytes;
      Tiles::template start<n>(to, a, first);
      Tiles::template start<n>(to + kTileBytes, b, first);
      if constexpr (by_key) {
        static_assert(2 * n <= kFusedThreads);
        const int at = int(threadIdx.x) % n;
        if (int(threadIdx.x) < 2 * n) {
          const float* from = static_cast<const float*>(int(threadIdx.x) < n ? l.top : l.inner);
          from += (batch * l.heads + head) * l.queries;
          const bool exists = first + at < others;
          start_copy<4>(numbers + stage * 2 * n + int(threadIdx.x), exists ? from + first + at : from, exists ? 4 : 0);
        }
      }
    };
    if (head > first_head) block_barrier();  // the last head's tiles have been read
    if (begin < end) start(0, begin);
    ScorePlaces<by_key> at(l, batch, head, first_row + 2 * g);
    int stage = 0;
    for (int first = begin; first < end; first += n, stage ^= 1) {
      const char* tile = stages + stage * 2 * kTileBytes;
      wait_copies();
      block_barrier();  // these tiles are there, and the last ones have been read
      if (first + n < end) start(stage ^ 1, first + n);
      const int last = first + n - 1;
      if (first_row >= rows || (l.causal && (by_key ? last < first_row : first > last_row))) continue;
      const float* its = numbers + stage * 2 * n + t * Tiles::kQuarter;  // `top` of queries; n further, `inner`
      const bool whole =
          last_row < rows && last < others && !(l.causal && (by_key ? last_row > first : last > first_row));
      at.column = first + t * Tiles::kQuarter, at.whole = whole;
      at.inside = last < others && (!by_key || last_row < rows);
      uint32_t mask[N * int(sizeof(T))];
      at.template load_mask<T, N>(mask);
      float score[N][4], of_weight[N][4];
      Tiles::multiply(score, own, tile);
      const bool shows = by_key || at.template shows<T, N>(mask);
      if (shows) at.template mask<T, N>(score, mask);
      if constexpr (by_key) {
        VESTA_UNROLL
        for (int k = 0; k < 4 * N; ++k) {
          score[k / 4][k % 4] = fast_exp2((score[k / 4][k % 4] - its[k / 4 * 2 + k % 2]) * kLog2e);
        }
      } else if (shows) {
        exp_below(score, own_top);
      } else {  // as in the forward pass: rows whose `top` is NaN get that from what they see
        VESTA_UNROLL
        for (int k = 0; k < 4 * N; ++k) score[k / 4][k % 4] = 0;
      }
      Tiles::multiply(of_weight, second_own, tile + kTileBytes);
      const KeptWeights<N> kept(at);
      kept.multiply(of_weight);
      VESTA_UNROLL
      for (int i = 0; i < N; ++i) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) {
          of_weight[i][e] = score[i][e] * (of_weight[i][e] - (by_key ? its[n + 2 * i + e % 2] : own_inner[e / 2]));
        }
      }
      if constexpr (by_key) {
        kept.multiply(score);
        Tiles::add_weighted(of_values, score, tile + kTileBytes);
      }
      Tiles::add_weighted(sum, of_weight, tile);
    }
  }
  if constexpr (by_key) {
    store_gradient<Tiles, Gradient::key, T>(sum, l, batch, part.head, first_row, l.of_k, l.keys, l.key_size,
                                            float(l.scale));
    store_gradient<Tiles, Gradient::value, T>(of_values, l, batch, part.head, first_row, l.of_v, l.keys, l.value_size,
                                              1);
  } else {
    store_gradient<Tiles, Gradient::query, T>(sum, l, batch, part.head, first_row, l.of_q, l.queries, l.key_size,
                                              float(l.scale));
  }
}

/// Runs f<64>() or f<128>(): the columns of a tile. Returns false for wider heads, and for numbers beyond int.
template <class F>
bool with_tiles(const AttentionLaunch& l, F f) {
  constexpr int64_t most = 1 << 30;
  const int64_t columns = l.key_size > l.value_size ? l.key_size : l.value_size;
  const int64_t rows = l.queries > l.keys ? l.queries : l.keys;
  if (columns > 128 || rows > most || l.batch * l.heads > most / ((rows + kWarpRows - 1) / kWarpRows)) return false;
  if (columns <= 64) f.template operator()<64>();
  else f.template operator()<128>();
  return true;
}

template <class T, int D, bool few>
void queue_fused(const AttentionLaunch& l) {
  const int range = l.parts ? int(attention_range(l)) : int(l.keys);
  const AttentionPart::Cut cut = few ? AttentionPart::Cut{l.batch, l.heads, l.queries, l.keys, kWarpRows, range}
                                     : AttentionPart::Cut{l.batch, l.heads, l.queries, 1, kFusedRows, 1};
  queue_attention("attention", fused_attention_kernel<T, D, few>, l, cut, kFusedThreads,
                  WarpTiles<T, D>::kOwnBytes + 4 * kTileBytes + (few ? WarpTiles<T, D>::N * 512 : 0));
  if (!few || !l.parts) return;
  const int64_t warps = l.batch * l.heads * l.queries * ((l.value_size + 31) / 32);
  launch_block("attention_ranges", attention_ranges_kernel<T>, team_shape(uint64_t(warps), 32, l.stream), l, warps,
               int(cut.pieces()));
}
template <class T, int D, bool by_key>
void queue_fused_backward(const AttentionLaunch& l) {
  using Tiles = WarpTiles<T, D>;
  const int64_t heads = by_key ? l.heads / l.group : l.heads, rows = by_key ? l.keys : l.queries;
  constexpr int bytes = 2 * Tiles::kOwnBytes + 4 * kTileBytes + 4 * Tiles::kRows * int(sizeof(float));
  queue_attention("attention_backward", fused_backward_kernel<T, D, by_key>, l,
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
bool run_fused_backward(const AttentionLaunch& l) {
  return with_tiles(l, [&]<int D>() {
    queue_fused_backward<T, D, false>(l);
    queue_fused_backward<T, D, true>(l);
  });
}

}  // namespace
}  // namespace vesta::cuda
