// The arithmetic of fused attention in a warp's registers, by tensor cores (tensor_cores.cuh): a warp owns 16 rows, and
// meets the rows of the other side in tiles of 8 KB of shared memory, some of which are loaded while it computes.
//
// A lane has g = lane / 4 and t = lane % 4. Of 16 x 8 N scores it has N times four, score[i][0] to [3], as the tensor
// cores leave them, and as they take them for the next product, whose terms are columns of scores and rows of a tile.
// Which row is which of theirs is ours to choose. The lane's scores are those of the warp's rows 2g and 2g + 1, and of
// 2 N neighbouring rows of the tile: i-th product has rows 2i and 2i + 1 of each quarter, so that a lane reads its part
// of a mask in few pieces. Terms of the products of rows with rows are the columns of the operands, of which lane t
// takes 16 bytes of 64.
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

VESTA_DEVICE float multiply_add(float a, float b, float c) { return ::fmaf(a, b, c); }

/// 16 bytes of a row.
using Chunk = Elements<uint32_t, 4>;
/// The factors of a lane in a step of products of rows g and g + 8.
using StepRows = Elements<uint32_t, 4>;

/// Returns what the number of a chunk is combined with in the row that is column `row` of products: the eight rows of a
/// product have eight places for each chunk (loads of eight rows at once), those of columns 2t lie two chunks apart
/// (floats, two rows at a time), those of 2t and 2t + 1 four.
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
  static constexpr int kQuarter = kRows / 4;  // rows of which a lane has the scores
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
    static_assert(step == kQuarter && rows % step == 0);
    const int chunk = int(threadIdx.x) % chunks, row = int(threadIdx.x) / chunks, column = chunk * width;
    const int left = from.rows - first < rows ? int(from.rows - first) : rows;
    const int columns = from.columns < D ? int(from.columns) - column : D - column;
    const T* at = from.data + (first + row) * from.stride + column;
    const auto place = [&](int i) {
      return to + (row + i) * kRowBytes + (chunk ^ exchange_of(row % 2) ^ exchange_of(i / step * 2)) * 16;
    };
    if (from.aligned && left == rows && columns >= width) {
      VESTA_UNROLL
      for (int i = 0; i < rows; i += step, at += step * from.stride) start_copy<16>(place(i), at, 16);
    } else if (from.aligned) {
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
      for (int i = 0; i < 2; ++i) x[j][i] = load_chunk(from, first + 2 * g + i, (4 * j + t) * (16 / int(sizeof(T))));
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

  /// Multiplies 16 rows that load_own() has stored with 8 n rows in shared memory, those of the first n products.
  template <int n>
  static VESTA_DEVICE void multiply(float (&score)[n][4], const StepRows* own, const char* rows) {
    const int g = int(lane_index() / 4), t = int(lane_index() % 4), exchange = exchange_of(g);
    const char* const row = rows + (g / 2 * kQuarter + g % 2) * kRowBytes + (t ^ (exchange & 3)) * 16;
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
          const Chunk y = *reinterpret_cast<const Chunk*>(row + 2 * i * kRowBytes + ((4 * j) ^ (exchange & 4)) * 16);
          VESTA_UNROLL
          for (int s = 0; s < 2; ++s) add_product(add[i], rest[i], a[s].v, low[s].v, y.v[2 * s], y.v[2 * s + 1]);
        }
      }
      VESTA_UNROLL
      for (int i = 0; i < n; ++i) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float more = split ? add[i][e] + rest[i][e] : add[i][e];
          score[i][e] = first == 0 ? more : score[i][e] + more;
        }
      }
    }
  }

  /// Multiplies the sums of the lane's two rows with `factor`, then adds the weights times rows of a tile.
  /// `mine(piece)`: whether this warp sums the piece of columns.
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
          high[s][i] = two_rounded<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
        }
      }
    }
    if (!split && any_lane(factor[0] != 1 || factor[1] != 1)) {
      VESTA_UNROLL
      for (int c = 0; c < kSums; ++c) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) sum[c][e] = sum[c][e] * factor[e / 2];
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
          const int exchange = exchange_of(lane % 4 * 2);
          const char* at = rows + (lane % 4 * kQuarter + 2 * s) * kRowBytes + 8 * p * 16;
          const Chunk even = *reinterpret_cast<const Chunk*>(at + (lane / 4 ^ exchange) * 16);
          const Chunk odd = *reinterpret_cast<const Chunk*>(at + kRowBytes + (lane / 4 ^ exchange ^ 4) * 16);
          VESTA_UNROLL
          for (int c = 0; c < kColumns; ++c) y[c][0] = even.v[c], y[c][1] = odd.v[c];
        } else {
          const int column = lane % 8, chunk = 2 * p + lane / 16;
          const int row = column / 2 * kQuarter + column % 2 + lane / 8 % 2 * 2;
          uint32_t turned[4];
          load_turned(turned, rows + (row + 4 * s) * kRowBytes + (chunk ^ exchange_of(column)) * 16);
          VESTA_UNROLL
          for (int i = 0; i < 4; ++i) y[i / 2][i % 2] = turned[i];
        }
        VESTA_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          add_product(split ? add[c] : sum[p * kColumns + c], rest[c], high[s], low[s], y[c][0], y[c][1]);
        }
      }
      VESTA_UNROLL
      for (int c = 0; split && c < kColumns; ++c) {
        VESTA_UNROLL
        for (int e = 0; e < 4; ++e) {
          float& own = sum[p * kColumns + c][e];
          own = multiply_add(own, factor[e / 2], add[c][e] + rest[c][e]);
        }
      }
    }
  }
  static VESTA_DEVICE void add_weighted(float (&sum)[kSums][4], const float (&weight)[N][4], const char* rows) {
    add_weighted(sum, weight, rows, {1, 1}, [](int) { return true; });
  }

  /// Calls f(number of a piece, i, first column, values) for the neighbours among the lane's sums of rows 2g + i.
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

/// The places of a lane's scores in a head: of rows `row` and the next, and of columns `column` and on; rows are
/// queries, or keys if `turned`. The lane's score f is score[i][e] at row e / 2 and column 2 i + e % 2.
template <bool turned>
struct ScorePlaces {
  const AttentionLaunch& l;
  const int batch, head, row;
  const float scale;
  int64_t of_row[2];  // where the mask's rows begin; outside, that at the end
  int column = 0;
  bool inside = false;  // no column is outside; if turned, no row either
  bool whole = false;  // none is outside or hidden by causality

  VESTA_DEVICE ScorePlaces(const AttentionLaunch& launch, int batch_, int head_, int row_)
      : l(launch), batch(batch_), head(head_), row(row_), scale(float(launch.scale)) {
    const int rows = int(turned ? l.keys : l.queries);
    VESTA_UNROLL
    for (int k = 0; k < 2; ++k) {
      of_row[k] = batch * l.mask.batch + head * l.mask.head +
                  (row + k < rows ? row + k : rows - 1) * (turned ? l.mask.column : l.mask.row);
    }
  }
  /// Returns the number of an element among those of a mask that a lane has loaded.
  template <int n>
  static VESTA_DEVICE constexpr int place(int k, int j) {
    return turned ? 2 * j + k : 2 * n * k + j;
  }
  /// Loads the mask's elements, of `size` bytes, side by side, without a branch between them, so that all loads are
  /// under way at once; outside, those at the end.
  template <int size, int n>
  VESTA_DEVICE void load(uint32_t* words) const {
    const AttentionMask& mask = l.mask;
    const char* const data = static_cast<const char*>(mask.data);
    const int64_t step = (turned ? mask.row : mask.column) * size;
    if (mask.aligned && inside) {
      if constexpr (turned) {
        const char* at = data + of_row[0] * size + column * step;
        VESTA_UNROLL
        for (int j = 0; j < 2 * n; ++j, at += step) {
          if constexpr (size == 1) {
            const uint32_t pair = *reinterpret_cast<const uint16_t*>(at);
            words[j / 2] = j % 2 == 0 ? pair : words[j / 2] | pair << 16;
          } else {
            const auto pair = *reinterpret_cast<const Elements<uint32_t, size / 2>*>(at);
            VESTA_UNROLL
            for (int i = 0; i < size / 2; ++i) words[j * (size / 2) + i] = pair.v[i];
          }
        }
      } else {
        constexpr int all = 2 * n * size / 4, some = all < 4 ? all : 4;
        VESTA_UNROLL
        for (int k = 0; k < 2; ++k) {
          const char* const at = data + (of_row[k] + column) * size;
          VESTA_UNROLL
          for (int i = 0; i < all; i += some) {
            const auto piece = *reinterpret_cast<const Elements<uint32_t, some>*>(at + 4 * i);
            VESTA_UNROLL
            for (int j = 0; j < some; ++j) words[k * all + i + j] = piece.v[j];
          }
        }
      }
    } else {
      const int columns = int(turned ? l.queries : l.keys);
      uint32_t elements[4 * n];
      VESTA_UNROLL
      for (int k = 0; k < 2; ++k) {
        VESTA_UNROLL
        for (int j = 0; j < 2 * n; ++j) {
          const char* at = data + of_row[k] * size + (column + j < columns ? column + j : columns - 1) * step;
          uint32_t& to = elements[place<n>(k, j)];
          if constexpr (size == 1) to = *reinterpret_cast<const uint8_t*>(at);
          else if constexpr (size == 2) to = *reinterpret_cast<const uint16_t*>(at);
          else to = *reinterpret_cast<const uint32_t*>(at);
        }
      }
      VESTA_UNROLL
      for (int w = 0; w < n * size; ++w) {
        words[w] = 0;
        VESTA_UNROLL
        for (int i = 0; i < 4 / size; ++i) words[w] |= elements[w * (4 / size) + i] << 8 * size * i;
      }
    }
  }
  /// Loads a boolean mask or one of the operands' dtype, T, for mask().
  template <class T, int n>
  VESTA_DEVICE void load_mask(uint32_t (&words)[n * int(sizeof(T))]) const {
    if (l.mask.kind == AttentionMask::boolean) load<1, n>(words);
    if (l.mask.kind == AttentionMask::same) load<int(sizeof(T)), n>(words);
  }
  /// Returns whether a boolean mask shows any of the warp's scores; true for other masks. Ask when products are under
  /// way that hide the time of the mask's loads.
  template <class T, int n>
  VESTA_DEVICE bool shows(const uint32_t (&words)[n * int(sizeof(T))]) const {
    if (l.mask.kind != AttentionMask::boolean) return true;
    uint32_t any = 0;
    VESTA_UNROLL
    for (int w = 0; w < n; ++w) any |= words[w];
    return any_lane(any != 0);
  }
  /// Scales products and masks them; `words` is what load_mask() has loaded.
  template <class T, int n>
  VESTA_DEVICE void mask(float (&score)[n][4], const uint32_t (&words)[n * int(sizeof(T))]) const {
    uint32_t shown = ~uint32_t(0);  // a bit for each
    if (l.mask.kind == AttentionMask::same) {
      add<T>(score, words);
    } else if (sizeof(T) < 4 && l.mask.kind == AttentionMask::single) {
      uint32_t floats[4 * n];
      load<4, n>(floats);
      add<float>(score, floats);
    } else {
      if (l.mask.kind == AttentionMask::boolean) {
        shown = 8 * n < 32 ? ~uint32_t(0) << (8 * n & 31) : 0;
        VESTA_UNROLL
        for (int w = 0; w < n; ++w) {  // bytes that are 0 or 1
          shown |= (words[w] * 0x10204080u >> 28) << 4 * w;
        }
      }
      VESTA_UNROLL
      for (int k = 0; k < 4 * n; ++k) score[k / 4][k % 4] = score[k / 4][k % 4] * scale;
    }
    if (!whole) {
      VESTA_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int own = row + k, rows = int(turned ? l.keys : l.queries), columns = int(turned ? l.queries : l.keys);
        const int begin = turned && l.causal ? own : 0;
        int end = !turned && l.causal && own + 1 < columns ? own + 1 : columns;
        if (own >= rows) end = 0;
        VESTA_UNROLL
        for (int j = 0; j < 2 * n; ++j) {
          if (column + j < begin || column + j >= end) shown &= ~(uint32_t(1) << place<n>(k, j));
        }
      }
    }
    if (shown == ~uint32_t(0)) return;
    VESTA_UNROLL
    for (int i = 0; i < n; ++i) {
      VESTA_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (!(shown >> place<n>(e / 2, 2 * i + e % 2) & 1)) score[i][e] = -INFINITY;
      }
    }
  }

 private:
  template <class M, int n>
  VESTA_DEVICE void add(float (&score)[n][4], const uint32_t* words) const {
    VESTA_UNROLL
    for (int i = 0; i < n; ++i) {
      VESTA_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int f = place<n>(e / 2, 2 * i + e % 2);
        float more;
        if constexpr (sizeof(M) == 4) more = float_of_bits(words[f]);
        else more = convert<float>(M::from_bits(uint16_t(words[f / 2] >> 16 * (f % 2))));
        score[i][e] = multiply_add(score[i][e], scale, more);
      }
    }
  }
};

/// Returns whether `top` is so far from zero that e^(score - top) is computed from the difference. Otherwise it is
/// 2^(score * log2(e) + down), down = -top * log2(e), rounded once; it is off by the rounding of `down`, all of a row
/// by the same.
VESTA_DEVICE bool is_far(float top) { return !(::fabsf(top) <= 65536.0f); }

/// Computes e^(score - top) of the lane's two rows.
template <int n>
VESTA_DEVICE void exp_below(float (&score)[n][4], const float (&top)[2]) {
  const float down[2] = {-top[0] * kLog2e, -top[1] * kLog2e};
  const bool far[2] = {is_far(top[0]), is_far(top[1])};
  if (any_lane(far[0] || far[1])) {
    VESTA_UNROLL
    for (int k = 0; k < 4 * n; ++k) {
      float& s = score[k / 4][k % 4];
      const int i = k % 4 / 2;
      s = far[i] ? (s - top[i]) * kLog2e : multiply_add(s, kLog2e, down[i]);
    }
  } else {
    VESTA_UNROLL
    for (int k = 0; k < 4 * n; ++k) score[k / 4][k % 4] = multiply_add(score[k / 4][k % 4], kLog2e, down[k % 4 / 2]);
  }
  VESTA_UNROLL
  for (int k = 0; k < 4 * n; ++k) score[k / 4][k % 4] = fast_exp2(score[k / 4][k % 4]);
}

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
      const int own = at.row + k / (2 * n), other = at.column + k % (2 * n);
      const int query = turned ? other : own, key = turned ? own : other;
      keeps |= uint32_t(kept.keeps(query, key)) << k;
    }
  }
  VESTA_DEVICE void multiply(float (&weight)[n][4]) const {
    if (!on) return;
    VESTA_UNROLL
    for (int i = 0; i < n; ++i) {
      VESTA_UNROLL
      for (int e = 0; e < 4; ++e)
        weight[i][e] = weight[i][e] * (keeps >> (2 * n * (e / 2) + 2 * i + e % 2) & 1 ? scale : 0);
    }
  }
};

// Rows that are computed again, a number at a time, because tensor cores make NaN of infinite factors. The whole warp
// computes a row.

/// The weight of a key to a query, relative to `top`, times dropout's factor; or its gradient.
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
/// Calls f(row) for each row of the warp of which a lane's sums (bad[i], of row 2g + i) are NaN.
template <class F>
VESTA_DEVICE void each_bad_row(const bool (&bad)[2], F f) {
  if (!any_lane(bad[0] || bad[1])) return;
  VESTA_ROLLED
  for (int r = 0; r < kWarpRows; ++r) {
    if (any_lane(int(lane_index() / 4) == r / 2 && (r % 2 == 0 ? bad[0] : bad[1]))) f(r);
  }
}

}  // namespace
}  // namespace vesta::cuda
