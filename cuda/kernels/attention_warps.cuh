// The arithmetic of fused attention in a warp's registers, by tensor cores (tensor_cores.cuh): a warp owns 16 rows, and
// meets the rows of the other side in tiles of 8 KB of shared memory, some of which are loaded while it computes.
//
// A lane has g = lane / 4 and t = lane % 4. Of 16 x 8 N scores it has those of rows g and g + 8, columns 8 i + 2t and
// the next, for all i < N: score[i][0] to [3], as the tensor cores leave them, and as they take them for the next
// product: its terms are columns of scores and rows of a tile, where lane t reads rows 2t and 2t + 1 of eight. Terms of
// the products of rows with rows are the columns of the operands, of which lane t takes 16 bytes of 64.
//
// Rows of a tile are cut into chunks of 16 bytes, which are exchanged so that both ways of reading use all banks.
#pragma once
#include <vesta/cuda/kernels/attention_parts.cuh>
#include <vesta/cuda/kernels/tensor_cores.cuh>

namespace vesta::cuda {
namespace {

constexpr int kWarps = 4, kWarpRows = 16;  // of a block; of a warp
constexpr int kFusedThreads = 32 * kWarps;
constexpr int kFusedRows = kWarps * kWarpRows;
constexpr int kTileBytes = 8 << 10;
constexpr float kLog2e = 1.44269504f;

/// 16 bytes of a row.
using Chunk = Elements<uint32_t, 4>;
/// What a lane gives to a step of products of rows g and g + 8.
using StepRows = Elements<uint32_t, 4>;

/// Returns what the number of a chunk in row `row` is combined with: eight rows have eight places for each chunk (loads
/// of eight rows at once), rows 2t lie two chunks apart (floats, two rows at a time), rows 2t and 2t + 1 four.
VESTA_DEVICE constexpr int exchange_of(int row) { return ((row ^ row >> 2) & 1) << 2 | (row & 2) | (row >> 2 & 1); }

/// Loads the chunk at `column` of a row; zeros outside.
template <class T>
VESTA_DEVICE Chunk load_chunk(const HeadRows<T>& from, int64_t row, int64_t column) {
  constexpr int n = 16 / int(sizeof(T));
  Elements<T, n> v{};
  const T* at = from.data + row * from.stride + column;
  if (row < from.rows && from.aligned && column + n <= from.columns) {
    v = *reinterpret_cast<const Elements<T, n>*>(at);
  } else if (row < from.rows) {
    VESTA_UNROLL
    for (int i = 0; i < n; ++i) {
      if (column + i < from.columns) v.v[i] = at[i];
    }
  }
  return __builtin_bit_cast(Chunk, v);
}

/// Tiles of rows of at most D columns.
template <class T, int D>
struct WarpTiles {
  static constexpr int kRowBytes = D * int(sizeof(T));
  static constexpr int kRows = kTileBytes / kRowBytes;
  static constexpr int N = kRows / 8;
  static constexpr int kChunks = kRowBytes / 64;  // of a row, that a lane takes for products of rows with rows
  static constexpr int kSteps = 2 * kChunks;  // of such products
  static constexpr int kSums = D / 8;
  static constexpr bool split = sizeof(T) == 4;
  static constexpr int kChain = split ? 2 : kChunks;  // chunks of a chain of sums of tensor cores
  static constexpr bool kHoldsParts = split && D <= 64;  // of own rows in shared memory, as far as there is room
  static constexpr int kOwnBytes = (kHoldsParts ? 2 : 1) * kFusedRows * kRowBytes;
  static constexpr int kPiece = split ? 32 : 16;  // columns that are summed together

  /// Starts to load rows `first` and on, all threads of the block together.
  template <int rows>
  static VESTA_DEVICE void start(char* to, const HeadRows<T>& from, int64_t first) {
    constexpr int chunks = kRowBytes / 16, width = 16 / int(sizeof(T)), step = kWarps * 32 / chunks;
    static_assert(step % 4 == 0 && rows % step == 0);
    const int chunk = int(threadIdx.x) % chunks, row = int(threadIdx.x) / chunks, column = chunk * width;
    const int left = from.rows - first < rows ? int(from.rows - first) : rows;
    const int columns = from.columns < D ? int(from.columns) - column : D - column;
    const T* at = from.data + (first + row) * from.stride + column;
    const auto place = [&](int i) {
      return to + (row + i) * kRowBytes + (chunk ^ exchange_of(row) ^ exchange_of(i)) * 16;
    };
    if (from.aligned) {
      const int bytes = columns <= 0 ? 0 : columns < width ? columns * int(sizeof(T)) : 16;
      VESTA_UNROLL
      for (int i = 0; i < rows; i += step) {
        const bool inside = row + i < left && bytes > 0;
        start_copy<16>(place(i), inside ? at + i * from.stride : from.data, inside ? bytes : 0);
      }
    } else {
      VESTA_ROLLED
      for (int i = 0; i < rows; i += step) {
        Elements<T, width> v{};
        VESTA_UNROLL
        for (int j = 0; j < width; ++j) {
          if (row + i < left && j < columns) v.v[j] = at[i * from.stride + j];
        }
        *reinterpret_cast<Elements<T, width>*>(place(i)) = v;
      }
    }
  }

  /// Stores what the lane gives to products of 16 rows, `first` and on, to its part of shared memory.
  static VESTA_DEVICE void load_own(StepRows* own, const HeadRows<T>& from, int64_t first) {
    const int g = int(lane_index() / 4), t = int(lane_index() % 4);
    Chunk x[kChunks][2];
    VESTA_UNROLL
    for (int j = 0; j < kChunks; ++j) {
      VESTA_UNROLL
      for (int i = 0; i < 2; ++i) x[j][i] = load_chunk(from, first + g + 8 * i, (4 * j + t) * (16 / int(sizeof(T))));
    }
    VESTA_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const Chunk &a = x[s / 2][0], &b = x[s / 2][1];
      const int k = s % 2 * 2;
      StepRows rows{a.v[k], b.v[k], a.v[k + 1], b.v[k + 1]};
      if constexpr (kHoldsParts) {
        StepRows low;
        VESTA_UNROLL
        for (int i = 0; i < 4; ++i) split_float(rows.v[i], rows.v[i], low.v[i]);
        own[(kSteps + s) * kFusedThreads] = low;
      }
      own[s * kFusedThreads] = rows;
    }
  }

  /// Multiplies 16 rows that load_own() has stored with 8 n rows in shared memory.
  template <int n>
  static VESTA_DEVICE void multiply(float (&score)[n][4], const StepRows* own, const char* rows) {
    const int g = int(lane_index() / 4), t = int(lane_index() % 4), exchange = exchange_of(g);
    const char* const row = rows + g * kRowBytes + (t ^ (exchange & 3)) * 16;
    VESTA_UNROLL
    for (int i = 0; i < n; ++i) {
      VESTA_UNROLL
      for (int e = 0; e < 4; ++e) score[i][e] = 0;
    }
    VESTA_UNROLL
    for (int first = 0; first < kChunks; first += kChain) {
      float add[n][4] = {}, rest[n][4] = {};
      VESTA_UNROLL
      for (int j = first; j < first + kChain; ++j) {
        StepRows a[2], low[2];
        VESTA_UNROLL
        for (int s = 0; s < 2; ++s) {
          a[s] = own[(2 * j + s) * kFusedThreads];
          if constexpr (kHoldsParts) {
            low[s] = own[(kSteps + 2 * j + s) * kFusedThreads];
          } else {
            VESTA_UNROLL
            for (int k = 0; split && k < 4; ++k) split_float(a[s].v[k], a[s].v[k], low[s].v[k]);
          }
        }
        VESTA_UNROLL
        for (int i = 0; i < n; ++i) {
          const Chunk y = *reinterpret_cast<const Chunk*>(row + i * 8 * kRowBytes + ((4 * j) ^ (exchange & 4)) * 16);
          VESTA_UNROLL
          for (int s = 0; s < 2; ++s) add_product(add[i], rest[i], a[s].v, low[s].v, y.v[2 * s], y.v[2 * s + 1]);
        }
      }
      VESTA_UNROLL
      for (int i = 0; i < n; ++i) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) score[i][e] = score[i][e] + (split ? add[i][e] + rest[i][e] : add[i][e]);
      }
    }
  }

  /// Multiplies the sums of rows g and g + 8 with `factor`, then adds the weights times rows of a tile. `mine(piece)`:
  /// whether this warp sums the piece of columns.
  template <class Mine>
  static VESTA_DEVICE void add_weighted(float (&sum)[kSums][4], const float (&weight)[N][4], const char* rows,
                                        const float (&factor)[2], Mine mine) {
    const int lane = int(lane_index());
    constexpr int steps = split ? N : N / 2, kColumns = kPiece / 8;
    uint32_t high[steps][4], low[steps][4];
    VESTA_UNROLL
    for (int s = 0; s < steps; ++s) {
      VESTA_UNROLL
      for (int i = 0; i < 4; ++i) {
        if constexpr (split) {
          split_float(bits_of(weight[s][i % 2 * 2 + i / 2]), high[s][i], low[s][i]);
        } else {
          const float (&pair)[4] = weight[2 * s + i / 2];
          high[s][i] = pack_numbers<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
        }
      }
    }
    VESTA_UNROLL
    for (int p = 0; p < D / kPiece; ++p) {
      if (!mine(p)) continue;
      float add[kColumns][4] = {}, rest[kColumns][4] = {};
      VESTA_UNROLL
      for (int s = 0; s < steps; ++s) {
        uint32_t y[kColumns][2];
        if constexpr (split) {
          const int row = lane % 4 * 2, exchange = exchange_of(row);
          const char* at = rows + (8 * s + row) * kRowBytes + 8 * p * 16;
          const Chunk even = *reinterpret_cast<const Chunk*>(at + (lane / 4 ^ exchange) * 16);
          const Chunk odd = *reinterpret_cast<const Chunk*>(at + kRowBytes + (lane / 4 ^ exchange ^ 4) * 16);
          VESTA_UNROLL
          for (int c = 0; c < kColumns; ++c) y[c][0] = even.v[c], y[c][1] = odd.v[c];
        } else {
          const int row = lane % 16, chunk = 2 * p + lane / 16;
          uint32_t turned[4];
          load_turned(turned, rows + (16 * s + row) * kRowBytes + (chunk ^ exchange_of(row)) * 16);
          VESTA_UNROLL
          for (int i = 0; i < 4; ++i) y[i / 2][i % 2] = turned[i];
        }
        VESTA_UNROLL
        for (int c = 0; c < kColumns; ++c) add_product(add[c], rest[c], high[s], low[s], y[c][0], y[c][1]);
      }
      VESTA_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float more = split ? add[c][e] + rest[c][e] : add[c][e];
          sum[p * kColumns + c][e] = sum[p * kColumns + c][e] * factor[e / 2] + more;
        }
      }
    }
  }
  static VESTA_DEVICE void add_weighted(float (&sum)[kSums][4], const float (&weight)[N][4], const char* rows) {
    add_weighted(sum, weight, rows, {1, 1}, [](int) { return true; });
  }

  /// Calls f(number of a piece, i, first column, values) for the neighbours among the lane's sums of rows g (i = 0) and
  /// g + 8.
  template <class F>
  static VESTA_DEVICE void each(const float (&sum)[kSums][4], F f) {
    const int t = int(lane_index() % 4);
    VESTA_UNROLL
    for (int i = 0; i < 2; ++i) {
      VESTA_UNROLL
      for (int p = 0; p < D / kPiece; ++p) {
        VESTA_UNROLL
        for (int k = 0; k < 2; ++k) {
          if constexpr (split) {  // columns of a product are chunks of four columns
            const float v[4] = {sum[4 * p][2 * i + k], sum[4 * p + 1][2 * i + k], sum[4 * p + 2][2 * i + k],
                                sum[4 * p + 3][2 * i + k]};
            f(p, i, 32 * p + 8 * t + 4 * k, v);
          } else {
            const float v[2] = {sum[2 * p + k][2 * i], sum[2 * p + k][2 * i + 1]};
            f(p, i, 16 * p + 8 * k + 2 * t, v);
          }
        }
      }
    }
  }

 private:
  static VESTA_DEVICE void add_product(float (&sum)[4], float (&rest)[4], const uint32_t (&high)[4],
                                       const uint32_t (&low)[4], uint32_t y0, uint32_t y1) {
    if constexpr (split) {
      uint32_t high0, low0, high1, low1;
      split_float(y0, high0, low0), split_float(y1, high1, low1);
      add_step<T>(rest, low, high0, high1);
      add_step<T>(sum, high, high0, high1);
      add_step<T>(rest, high, low0, low1);
    } else {
      add_step<T>(sum, high, y0, y1);
    }
  }
};

/// The places of a lane's scores in a head: its first is that of row `row` and column `column`; rows are queries, or
/// keys if `turned`.
template <bool turned>
struct ScorePlaces {
  const AttentionLaunch& l;
  int batch, head, row, column;
  bool whole;  // none is outside or hidden by causality

  VESTA_DEVICE bool exists(int i, int e) const {
    const int own = row + 8 * (e / 2), other = column + 8 * i + e % 2;
    const int query = turned ? other : own, key = turned ? own : other;
    return query < int(l.queries) && key < int(l.keys) && !(l.causal && key > query);
  }
  /// Loads the mask's elements, without a branch, so that all loads are under way at once; outside, those at the end.
  template <class M, int n>
  VESTA_DEVICE void load_mask(M (&to)[n][4]) const {
    const AttentionMask& mask = l.mask;
    const int rows = int(turned ? l.keys : l.queries), columns = int(turned ? l.queries : l.keys);
    const int64_t own_step = turned ? mask.column : mask.row, other_step = turned ? mask.row : mask.column;
    const M* const first = static_cast<const M*>(mask.data) + batch * mask.batch + head * mask.head;
    VESTA_UNROLL
    for (int k = 0; k < 2; ++k) {
      const M* const of_row = first + (row + 8 * k < rows ? row + 8 * k : rows - 1) * own_step;
      VESTA_UNROLL
      for (int i = 0; i < 2 * n; ++i) {
        const int other = column + 8 * (i / 2) + i % 2;
        to[i / 2][2 * k + i % 2] = of_row[(other < columns ? other : columns - 1) * other_step];
      }
    }
  }
  /// Returns a bit for each score: whether a boolean mask shows it.
  template <int n>
  VESTA_DEVICE uint32_t shown() const {
    if (l.mask.kind != AttentionMask::boolean) return ~uint32_t(0);
    uint8_t shows[n][4];
    load_mask(shows);
    uint32_t bits = 0;
    VESTA_UNROLL
    for (int k = 0; k < 4 * n; ++k) bits |= uint32_t(shows[k / 4][k % 4] != 0) << k;
    return bits;
  }
  /// Scales products and masks them; `bits` is what shown() returned.
  template <class T, int n>
  VESTA_DEVICE void mask(float (&score)[n][4], uint32_t bits) const {
    const float scale = float(l.scale);
    VESTA_UNROLL
    for (int k = 0; k < 4 * n; ++k) score[k / 4][k % 4] = score[k / 4][k % 4] * scale;
    if (l.mask.kind == AttentionMask::none && whole) return;
    if (l.mask.kind == AttentionMask::same) add<T>(score);
    if (l.mask.kind == AttentionMask::single) add<float>(score);
    VESTA_UNROLL
    for (int k = 0; k < 4 * n; ++k) {
      const bool shows = bits >> k & 1 && (whole || exists(k / 4, k % 4));
      score[k / 4][k % 4] = shows ? score[k / 4][k % 4] : -INFINITY;
    }
  }

 private:
  template <class M, int n>
  VESTA_DEVICE void add(float (&score)[n][4]) const {
    M v[n][4];
    load_mask(v);
    VESTA_UNROLL
    for (int k = 0; k < 4 * n; ++k) score[k / 4][k % 4] = score[k / 4][k % 4] + convert<float>(v[k / 4][k % 4]);
  }
};

/// Dropout of a lane's weights.
template <int n>
struct KeptWeights {
  uint32_t keeps = 0;  // a bit for each
  float scale = 1;
  const bool on;
  template <bool turned>
  VESTA_DEVICE explicit KeptWeights(const ScorePlaces<turned>& at) : on(at.l.kept < 1) {
    if (!on) return;
    Kept<float> kept(at.l, at.batch, at.head);
    scale = kept.scale;
    VESTA_ROLLED
    for (int k = 0; k < 4 * n; ++k) {
      const int own = at.row + 8 * (k % 4 / 2), other = at.column + 8 * (k / 4) + k % 2;
      keeps |= uint32_t(kept.keeps(turned ? other : own, turned ? own : other)) << k;
    }
  }
  VESTA_DEVICE void multiply(float (&weight)[n][4]) const {
    if (!on) return;
    VESTA_UNROLL
    for (int i = 0; i < n; ++i) {
      VESTA_UNROLL
      for (int e = 0; e < 4; ++e) weight[i][e] = weight[i][e] * (keeps >> (4 * i + e) & 1 ? scale : 0);
    }
  }
};

// Rows that are computed again, a number at a time, because tensor cores make NaN of infinite factors. The whole warp
// computes a row.

/// Computes the weight of a key to a query, as top says, times dropout's factor; or its gradient.
template <class T>
struct AgainHead {
  const AttentionLaunch& l;
  HeadRows<T> q, k, v, grad;
  Seen<T> seen;
  Kept<float> kept;
  const float *top, *inner;
  VESTA_DEVICE AgainHead(const AttentionLaunch& launch, int64_t batch, int64_t head)
      : l(launch),
        q(l.q, batch, head, l.queries, l.key_size),
        k(l.k, batch, head / l.group, l.keys, l.key_size),
        v(l.v, batch, head / l.group, l.keys, l.value_size),
        grad(l.grad, batch, head, l.queries, l.value_size),
        seen(l, batch, head),
        kept(l, batch, head),
        top(static_cast<const float*>(l.top) + (batch * l.heads + head) * l.queries),
        inner(static_cast<const float*>(l.inner) + (batch * l.heads + head) * l.queries) {}
  static VESTA_DEVICE float product(const HeadRows<T>& a, int64_t a_row, const HeadRows<T>& b, int64_t b_row) {
    float sum = 0;
    VESTA_ROLLED
    for (int64_t c = 0; c < a.columns; ++c) sum = sum + a.at(a_row, c) * b.at(b_row, c);
    return sum;
  }
  VESTA_DEVICE float score(int64_t query, int64_t key) const {
    return seen.masked(product(q, query, k, key) * float(l.scale), query, key);
  }
  VESTA_DEVICE float weight(int64_t query, int64_t key, float top_of_query) {
    return math::exp(score(query, key) - top_of_query) * kept.factor(query, key);
  }
  VESTA_DEVICE float gradient(int64_t query, int64_t key) {
    const float of_weight = product(grad, query, v, key) * kept.factor(query, key);
    return math::exp(score(query, key) - top[query]) * (of_weight - inner[query]);
  }
};
/// Sums weight(i) times row i of `rows`, from `begin` to `end`, in one column.
template <class T, class Weight>
VESTA_DEVICE float sum_of_rows(const HeadRows<T>& rows, int64_t column, int64_t begin, int64_t end, Weight weight) {
  float sum = 0;
  VESTA_ROLLED
  for (int64_t first = begin; first < end; first += 32) {
    const int64_t own = first + int64_t(lane_index());
    const float mine = own < end ? weight(own) : 0;
    VESTA_ROLLED
    for (int i = 0; i < 32 && first + i < end; ++i) {
      const float w = shuffle(mine, unsigned(i));
      if (column < rows.columns) sum = sum + w * rows.at(first + i, column);
    }
  }
  return sum;
}
/// Calls f(row) for each row of the warp of which a lane's sums (bad[0], of row g; bad[1], of g + 8) are NaN.
template <class F>
VESTA_DEVICE void each_bad_row(const bool (&bad)[2], F f) {
  if (!any_lane(bad[0] || bad[1])) return;
  VESTA_ROLLED
  for (int r = 0; r < kWarpRows; ++r) {
    if (any_lane(int(lane_index() / 4) == r % 8 && (r < 8 ? bad[0] : bad[1]))) f(r);
  }
}

}  // namespace
}  // namespace vesta::cuda
