// The block kernels of the matrix product: register tiles, packing, and the walk over a block. One source for all
// instruction sets and kinds of elements; a struct X of vectors (gemm_vectors.h) is all that differs. Include it only
// in files of kernels: everything here lives in the namespace of one instruction set.
#pragma once

#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/gemm_vectors.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

// The vectors of a panel of a matrix that is not packed.
template <class X>
constexpr int kInPlacePanel = X::kPanel;
template <class X>
  requires(X::kInPlacePanel != X::kPanel)
constexpr int kInPlacePanel<X> = X::kInPlacePanel;

enum class ARows : unsigned char { contiguous, stride, pointers };  // rows of a side by side, apart, one pointer each
enum class BRows : unsigned char { stride, table };

// One register tile: R rows times N vectors; the last vector holds `tail` columns where kMasked. A whole tile spreads
// over its depth the fetch of what later tiles read: from `ahead` on, in steps of `ahead_step` for each two of k. Where
// `ahead_step` is negative, b lies in memory with its rows far apart: a tile fetches those that it will read itself.
template <class X, int R, int N, bool kMasked, ARows kA, BRows kB>
void tile(const Block<typename X::T>& p, const typename X::T* a, const std::int32_t* a_table, const typename X::T* b,
          typename X::T* c, const typename X::T* bias, const typename X::T* row_bias, int tail,
          const typename X::T* ahead, std::int64_t ahead_step) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth;
  const typename X::Mask mask = X::mask(kMasked ? tail : W);
  const T* rows[R];
  if constexpr (kA == ARows::pointers) {
    for (int r = 0; r < R; ++r) rows[r] = p.a + a_table[r];
  }
  // A pointer to every third row: the two between are one and two strides away, which addressing modes can express. A
  // pointer per row does not fit in the registers.
  const T* thirds[(R + 2) / 3];
  for (int g = 0; g < (R + 2) / 3; ++g) thirds[g] = a + 3 * g * p.a_row;
  const std::int64_t a_row = p.a_row;
  V sum[R][N];
#pragma GCC unroll 24
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 24
    for (int v = 0; v < N; ++v) sum[r][v] = X::zero();
  }
  const std::int64_t k_end = p.k, a_col = p.a_col, b_row = p.b_row;
  const std::int32_t* const b_table = p.b_table;
  constexpr bool kFetches = (N == X::kPanel || N == kInPlacePanel<X>) && !kMasked && kB == BRows::stride;
  constexpr int kRowsAhead = 8;
  for (std::int64_t k = 0; k < k_end;) {
    if constexpr (kFetches) {
      if (ahead_step < 0) {
#pragma GCC unroll 8
        for (int v = 0; v < 2 * N; ++v) __builtin_prefetch(b + (kRowsAhead + v / N) * b_row + v % N * W);
      } else {
        for (std::int64_t i = 0; i < ahead_step; i += 64 / sizeof(T)) __builtin_prefetch(ahead + i, 0, 2);
        ahead += ahead_step;
      }
    }
#pragma GCC unroll 2
    for (int twice = 0; twice < 2; ++twice) {
      if (twice > 0 && k == k_end) break;
      V vb[N];
      const T* const line = kB == BRows::table ? b + b_table[k] : b;
#pragma GCC unroll 24
      for (int v = 0; v < N; ++v) {
        vb[v] = kMasked && v == N - 1 ? X::load(line + v * W, mask) : X::load(line + v * W);
      }
#pragma GCC unroll 24
      for (int r = 0; r < R; ++r) {
        const V va = X::broadcast(kA == ARows::pointers ? rows[r] + k
                                  : kA == ARows::stride ? thirds[r / 3] + r % 3 * a_row
                                                        : a + r);
#pragma GCC unroll 24
        for (int v = 0; v < N; ++v) sum[r][v] = X::fma(va, vb[v], sum[r][v]);
      }
      if constexpr (kA == ARows::contiguous) a += a_col;
      if constexpr (kA == ARows::stride) {
#pragma GCC unroll 24
        for (int g = 0; g < (R + 2) / 3; ++g) {
          asm("add %1, %0" : "+r"(thirds[g]) : "i"(sizeof(T)));  // hides the pattern
        }
      }
      if constexpr (kB == BRows::stride) b += b_row;
      ++k;
    }
  }
  const auto put = [&](bool plain) __attribute__((always_inline)) {
#pragma GCC unroll 24
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 24
      for (int v = 0; v < N; ++v) {
        T* const out = c + r * p.c_row + v * W;
        V value = sum[r][v];
        const bool part = kMasked && v == N - 1;
        if (!plain && p.accumulate) value = X::add(part ? X::load(out, mask) : X::load(out), value);
        if (!plain && bias != nullptr) {
          value = X::add(value, part ? X::load(bias + v * W, mask) : X::load(bias + v * W));
        }
        if (!plain && row_bias != nullptr) value = X::add(value, X::broadcast(row_bias + r));
        if (part) X::store(out, value, mask);
        else X::store(out, value);
      }
    }
  };
  // One test, not three a vector: with a short k the sums take as long to store as to compute.
  if (!p.accumulate && bias == nullptr && row_bias == nullptr) put(true);
  else put(false);
}

template <class T>
using TileFn = void (*)(const Block<T>&, const T*, const std::int32_t*, const T*, T*, const T*, const T*, int, const T*,
                        std::int64_t);

// Tiles of 1 to kRows rows, 1 to N vectors, full and masked: index [rows - 1][vectors - 1][masked]. Those at an edge of
// fewer vectors are masked in any case where a mask costs nothing.
template <class X, int kRows, int N, ARows kA, BRows kB>
struct TileTable {
  TileFn<typename X::T> at[kRows][N][2];
  constexpr TileTable() : at{} { fill<1, 1>(); }
  template <int R, int V>
  constexpr void fill() {
    at[R - 1][V - 1][0] = &tile < X, R, V, X::kFreeMask && V<N, kA, kB>;
    at[R - 1][V - 1][1] = &tile<X, R, V, true, kA, kB>;
    if constexpr (V < N) {
      fill<R, V + 1>();
    } else if constexpr (R < kRows) {
      fill<R + 1, 1>();
    }
  }
};

// Walks the tiles of a block, panel by panel: a panel of b stays in L1 while the tiles of a stream past it.
template <class X, int kRows, int N, ARows kA, BRows kB>
void walk(const Block<typename X::T>& p) {
  using T = typename X::T;
  static constexpr TileTable<X, kRows, N, kA, kB> table;
  constexpr int W = X::kWidth;
  // Where b is a plain matrix a step of N vectors may be wider than a packed panel.
  const std::int64_t b_step = N == X::kPanel ? p.b_tile : N * W;
  // Rows that need not come in packed tiles are divided evenly: a last tile of one row would wait for its own sums.
  std::int64_t height = kRows, a_step = p.a_tile;
  if (kRows > X::kRows || kA == ARows::stride) {
    const std::int64_t tiles = (p.m + kRows - 1) / kRows;
    height = (p.m + tiles - 1) / tiles;
    a_step = height * p.a_row;
  }
  constexpr std::int64_t kCached = 1 << 20;  // bytes that are read from the second cache
  const bool far_apart = kB == BRows::stride && p.k * p.b_row * std::int64_t(sizeof(T)) >= kCached;
  const bool short_rows = kRows > X::kRows && kA == ARows::stride && p.k * std::int64_t(sizeof(T)) <= 256 &&
                          p.m * p.a_row * std::int64_t(sizeof(T)) >= kCached;
  const T* b = p.b;
  for (std::int64_t j = 0; j < p.n; j += N * W, b += b_step) {
    const int cols = static_cast<int>(p.n - j < N * W ? p.n - j : N * W);
    const int vectors = (cols + W - 1) / W, tail = cols - (vectors - 1) * W;
    const auto* const column = &table.at[0][vectors - 1][tail != W];
    const T* a = p.a;
    for (std::int64_t i = 0; i < p.m; i += height, a += a_step) {
      const int rows = static_cast<int>(p.m - i < height ? p.m - i : height);
      // The tiles of this packed panel fetch the next one. In a burst, fetches from the third cache would keep the
      // loads of a tile waiting (compare_torch.py, GPT).
      const T* ahead = b;
      std::int64_t ahead_step = 0;
      if (N == X::kPanel && kB == BRows::stride && p.b_tile == N * W * p.k && j + N * W < p.n) {
        const std::int64_t share = (p.b_tile * kRows + p.m - 1) / p.m;
        ahead = b + b_step + i / kRows * share;
        ahead_step = (2 * share + p.k - 1) / p.k;
      }
      if (N == kInPlacePanel<X> && kB == BRows::stride && p.b_row != N * W && far_apart) ahead_step = -1;
      // The sums go to c long after: fetch its lines meanwhile.
      for (int r = 0; r < rows; ++r) {
        const T* const c = p.c + (i + r) * p.c_row + j;
        __builtin_prefetch(c, 1);
        if (N > 1) __builtin_prefetch(c + cols - 1, 1);
      }
      // Short rows follow each other, and a tile needs all of its own at once.
      for (int r = 0; r < rows && short_rows; ++r) {
        const T* const row = a + 2 * a_step + r * p.a_row;
        for (std::int64_t k = 0; k < p.k; k += 64 / sizeof(T)) __builtin_prefetch(row + k);
      }
      column[(rows - 1) * N * 2](p, a, kA == ARows::pointers && p.a_table != nullptr ? p.a_table + i : nullptr, b,
                                 p.c + i * p.c_row + j, p.bias != nullptr ? p.bias + j : nullptr,
                                 p.row_bias != nullptr ? p.row_bias + i : nullptr, tail, ahead, ahead_step);
    }
  }
}

// Multiplies a single row by a wide plain matrix: reads kLines whole lines of b side by side, which the prefetcher
// follows, and keeps the sums in memory. The chain of every sum is that of a tile.
template <class X>
void stream_row(const Block<typename X::T>& p) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, kLines = 8, kStrip = 128 * W;
  alignas(64) T sums[kStrip];
  for (std::int64_t j0 = 0; j0 < p.n; j0 += kStrip) {
    const int cols = static_cast<int>(p.n - j0 < kStrip ? p.n - j0 : kStrip), full = cols / W * W;
    const typename X::Mask mask = X::mask(cols - full);
    for (int j = 0; j < cols; j += W) X::store(sums + j, X::zero());
    for (std::int64_t k = 0; k < p.k; k += kLines) {
      const int lines = static_cast<int>(p.k - k < kLines ? p.k - k : kLines);
      V va[kLines];
      for (int l = 0; l < kLines; ++l) va[l] = l < lines ? X::broadcast(p.a + (k + l) * p.a_col) : X::zero();
      const T* const b = p.b + k * p.b_row + j0;
      if (lines == kLines) {
        for (int j = 0; j < full; j += W) {
          V sum = X::load(sums + j);
#pragma GCC unroll 24
          for (int l = 0; l < kLines; ++l) sum = X::fma(va[l], X::load(b + l * p.b_row + j), sum);
          X::store(sums + j, sum);
        }
      } else {
        for (int j = 0; j < full; j += W) {
          V sum = X::load(sums + j);
          for (int l = 0; l < lines; ++l) sum = X::fma(va[l], X::load(b + l * p.b_row + j), sum);
          X::store(sums + j, sum);
        }
      }
      if (full < cols) {
        V sum = X::load(sums + full);
        for (int l = 0; l < lines; ++l) sum = X::fma(va[l], X::load(b + l * p.b_row + full, mask), sum);
        X::store(sums + full, sum);
      }
    }
    T* const c = p.c + j0;
    for (int j = 0; j < cols; ++j) {
      T value = p.accumulate ? c[j] + sums[j] : sums[j];
      if (p.bias != nullptr) value = value + p.bias[j0 + j];
      if (p.row_bias != nullptr) value = value + p.row_bias[0];
      c[j] = value;
    }
  }
}

template <class X>
void block_of_tiles(const Block<typename X::T>& p) {
  constexpr int kRows = X::kRows, kTall = X::kPanel * kRows;
  constexpr int kFlat = 3;  // up to kFlat rows, four vectors keep the adders busier than two
  const bool plain_b = p.b_table == nullptr && p.b_tile == X::kPanel * X::kWidth;
  if (p.m == 1 && p.n >= 16 * X::kWidth && p.k > 1 && plain_b && p.a_table == nullptr) return stream_row<X>(p);
  if (p.b_table != nullptr) return walk<X, kRows, X::kPanel, ARows::contiguous, BRows::table>(p);
  const bool pointers = p.a_table != nullptr || p.a_row != 1;
  if (p.m <= kFlat && plain_b && p.a_table == nullptr && p.a_col == 1) {
    return walk<X, kFlat, 4, ARows::stride, BRows::stride>(p);
  }
  if constexpr (kInPlacePanel<X> != X::kPanel) {
    const bool rows = p.a_table == nullptr && p.a_col == 1 && p.a_row != 1;
    if (plain_b && rows && p.n > (kInPlacePanel<X> - 1) * X::kWidth) {
      return walk<X, X::kInPlaceRows, kInPlacePanel<X>, ARows::stride, BRows::stride>(p);
    }
  }
  // With columns for one vector only, take more rows, so that as many sums are in flight.
  if (p.n <= X::kWidth && p.a_table != nullptr && p.m > 0) return walk<X, kTall, 1, ARows::pointers, BRows::stride>(p);
  if (p.n <= X::kWidth && pointers && p.m > 0) return walk<X, kTall, 1, ARows::stride, BRows::stride>(p);
  // Likewise with columns for half a panel of four vectors, as Winograd's convolution has them.
  if constexpr (X::kPanel == 4) {
    if (p.n <= 2 * X::kWidth && p.a_table == nullptr && p.a_row != 1 && p.a_col == 1 && p.m > 0) {
      return walk<X, 2 * kRows, 2, ARows::stride, BRows::stride>(p);
    }
  }
  if (p.a_table != nullptr) return walk<X, kRows, X::kPanel, ARows::pointers, BRows::stride>(p);
  if (pointers) return walk<X, kRows, X::kPanel, ARows::stride, BRows::stride>(p);
  return walk<X, kRows, X::kPanel, ARows::contiguous, BRows::stride>(p);
}

// Multiplies R rows by two whole packed panels of b side by side: of few rows the panels are what takes time, and the
// processor foresees two streams better than one (compare_torch.py, rows x weight).
template <class X, int R>
void side_by_side(const Block<typename X::T>& p, std::int64_t j) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, N = X::kPanel, G = 2;
  const T* b = p.b + j / (N * W) * p.b_tile;
  const T* a = p.a;
  V sum[G][R][N];
#pragma GCC unroll 16
  for (int i = 0; i < G * R * N; ++i) sum[i / (R * N)][i / N % R][i % N] = X::zero();
  for (std::int64_t k = 0; k < p.k; ++k, a += p.a_col, b += N * W) {
    V va[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) va[r] = X::broadcast(a + r * p.a_row);
#pragma GCC unroll 16
    for (int i = 0; i < G * N; ++i) {
      const V vb = X::load(b + i / N * p.b_tile + i % N * W);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[i / N][r][i % N] = X::fma(va[r], vb, sum[i / N][r][i % N]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < G * R * N; ++i) {
    const std::int64_t r = i / N % R, column = j + (i / (R * N) * N + i % N) * W;
    T* const out = p.c + r * p.c_row + column;
    V value = sum[i / (R * N)][r][i % N];
    if (p.accumulate) value = X::add(X::load(out), value);
    if (p.bias != nullptr) value = X::add(value, X::load(p.bias + column));
    if (p.row_bias != nullptr) value = X::add(value, X::broadcast(p.row_bias + r));
    X::store(out, value);
  }
}

template <class X>
void block(const Block<typename X::T>& p) {
  constexpr std::int64_t kColumns = X::kPanel * X::kWidth;
  const bool packed = p.b_table == nullptr && p.a_table == nullptr && p.b_row == kColumns && p.b_tile == kColumns * p.k;
  std::int64_t j = 0;
  if ((p.m == 2 || p.m == 3) && p.k > 1 && packed) {
    for (; j + 2 * kColumns <= p.n; j += 2 * kColumns) {
      if (p.m == 2) side_by_side<X, 2>(p, j);
      else side_by_side<X, 3>(p, j);
    }
    if (j == p.n) return;
  }
  if (j == 0) return block_of_tiles<X>(p);
  Block<typename X::T> rest = p;
  rest.n -= j, rest.b += j / kColumns * p.b_tile, rest.c += j;
  if (rest.bias != nullptr) rest.bias += j;
  block_of_tiles<X>(rest);
}

// Writes the sums of `count` lines, one to a lane, with one of the vectors. The first is line l0, and the lanes' lines
// are `lane_step` apart.
template <class X>
void write_thin(const ThinBlock<typename X::T>& p, std::int64_t l0, std::int64_t lane_step, int count, int f,
                typename X::V value) {
  using T = typename X::T;
  const typename X::Mask mask = X::mask(count);
  T* const to = p.out + l0 * p.out_line + f * p.out_few;
  alignas(64) T column[X::kWidth] = {};
  if (p.line_bias != nullptr) {
    if (lane_step == 1) {
      value = X::add(value, X::load(p.line_bias + l0, mask));
    } else {
      for (int l = 0; l < count; ++l) column[l] = p.line_bias[l0 + l * lane_step];
      value = X::add(value, X::load(column));
    }
  }
  if (p.few_bias != nullptr) value = X::add(value, X::broadcast(p.few_bias + f));
  const std::int64_t out_step = lane_step * p.out_line;
  if (out_step == 1) return X::store(to, value, mask);
  X::store(column, value);
  for (int l = 0; l < count; ++l) to[l * out_step] = column[l];
}

// Returns how many lines apart `lanes` lanes begin, a multiple of `unit`, where a lane takes as many lines that follow
// each other in memory and reads one long stream, else 0. The processor foresees one stream in each page, so that
// lanes whose lines share a page would not be foreseen (compare_torch.py, GPT token by token). Lanes a multiple of
// kSets apart would compete for few sets of the second cache.
template <class T>
std::int64_t long_lane_step(const ThinBlock<T>& p, std::int64_t lanes, std::int64_t unit) {
  constexpr std::int64_t kPage = 4096, kSets = 32 * 1024;
  const std::int64_t bytes = p.line * static_cast<std::int64_t>(sizeof(T));
  if (bytes >= kPage) return 0;
  const std::int64_t lane_step = p.lines / (lanes * unit) * unit;
  return lane_step > unit && lane_step * bytes % kSets == 0 ? lane_step - unit : lane_step;
}

// Fetches what follows in each line, four lines of the cache ahead, into the second cache.
template <class X>
void fetch_ahead(const EvenLines<X>& lines) {
#pragma GCC unroll 16
  for (int l = 0; l < X::kWidth; ++l) __builtin_prefetch(lines(l) + 4 * 64 / sizeof(typename X::T), 0, 2);
}

// Does what thin_lines() does for kGroups times kWidth lines at a time, as long as so many are left; returns the number
// of the first line that is not done. One sum waits for its last addition: those of several groups are under way
// together. Each group is four lines of the cache behind the one before, because lines a multiple of a page apart share
// a set of the first cache, which holds one group's (compare_torch.py, mv 1024 and linear 128x400 -> 1).
template <class X, int kFew, int kGroups>
std::int64_t thin_groups(const ThinBlock<typename X::T>& p) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, kDepth = kLineDepth<X>, kStep = kLineBlocks<X> * kDepth;
  constexpr std::int64_t kBehind = 4 * 64 / sizeof(T);
  static_assert(kBlockK % kStep == 0 && kBehind % kStep == 0);
  const std::int64_t whole = p.k / kStep * kStep;
  std::int64_t l0 = 0;
  for (; l0 + kGroups * W <= p.lines; l0 += kGroups * W) {
    V sum[kGroups][kFew] = {}, total[kGroups][kFew] = {};
    // Adds the sums of a block of k to those of the blocks before it.
    const auto end_block = [&](int g, std::int64_t k) {
#pragma GCC unroll 2
      for (int f = 0; f < kFew; ++f) {
        total[g][f] = k <= kBlockK ? sum[g][f] : X::add(total[g][f], sum[g][f]);
        sum[g][f] = X::zero();
      }
    };
    const auto add = [&](int g, V line, std::int64_t k) {
#pragma GCC unroll 2
      for (int f = 0; f < kFew; ++f) sum[g][f] = X::fma(X::broadcast(p.vectors + k * kFew + f), line, sum[g][f]);
    };
    for (std::int64_t at = 0; at < whole + (kGroups - 1) * kBehind; at += kStep) {
#pragma GCC unroll 4
      for (int g = 0; g < kGroups; ++g) {
        const std::int64_t k = at - g * kBehind;
        if (k < 0 || k >= whole) continue;
        if (k % kBlockK == 0 && k > 0) end_block(g, k);
        V v[kLineBlocks<X>][kDepth];
        const T* const in = p.in + (l0 + g * W) * p.line + k;
        load_lines<X, kLineBlocks<X>>(EvenLines<X>(in, p.line), v);
#pragma GCC unroll 16
        for (int d = 0; d < kStep; ++d) add(g, v[d / kDepth][d % kDepth], k + d);
      }
    }
    alignas(64) T column[W];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      if (whole % kBlockK == 0 && whole > 0 && whole < p.k) end_block(g, whole);
#pragma GCC unroll 1
      for (std::int64_t k = whole; k < p.k; ++k) {
#pragma GCC unroll 1
        for (int l = 0; l < W; ++l) column[l] = p.in[(l0 + g * W + l) * p.line + k];
        add(g, X::load(column), k);
      }
      end_block(g, p.k);
      for (int f = 0; f < kFew; ++f) write_thin<X>(p, l0 + g * W, 1, W, f, total[g][f]);
    }
  }
  return l0;
}

// Sums the products of lines from number l0 on with kFew vectors, kWidth lines at a time.
template <class X, int kFew>
void thin_lines(const ThinBlock<typename X::T>& p, std::int64_t l0) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, kDepth = kLineDepth<X>;
  const std::int64_t lines = p.lines - l0, long_step = l0 == 0 ? long_lane_step(p, W, 1) : 0;
  for (std::int64_t n = 0; n * W < lines; ++n) {
    const bool apart = n < long_step;
    const int count = static_cast<int>(lines - n * W < W ? lines - n * W : W);
    const std::int64_t first = l0 + (apart ? n : n * W), lane_step = apart ? long_step : 1;
    const T* const in = p.in + first * p.line;
    const auto clamped = [&](int l) { return in + (l < count ? l : count - 1) * lane_step * p.line; };
    EvenLines<X> even_lines(in, lane_step * p.line);
    const T* starts[W] = {};
    if (count < W) {
      for (int l = 0; l < W; ++l) starts[l] = clamped(l);
    }
    alignas(64) T column[W];
    V total[kFew] = {};
    for (std::int64_t begin = 0; begin < p.k; begin += kBlockK) {
      const std::int64_t end = p.k - begin < kBlockK ? p.k : begin + kBlockK;
      std::int64_t k = begin;
      V sum[kFew];
#pragma GCC unroll 8
      for (int f = 0; f < kFew; ++f) sum[f] = X::zero();
      const auto add = [&](V line, std::int64_t at) {
#pragma GCC unroll 8
        for (int f = 0; f < kFew; ++f) sum[f] = X::fma(X::broadcast(p.vectors + at * kFew + f), line, sum[f]);
      };
      const auto add_blocks = [&]<int kBlocks>(const auto& lines) {
        V v[kBlocks][kDepth];
        load_lines<X, kBlocks>(lines, v);
#pragma GCC unroll 16
        for (int d = 0; d < kBlocks * kDepth; ++d) add(v[d / kDepth][d % kDepth], k + d);
      };
      const auto add_all = [&]<int kBlocks>() {
        constexpr int kSpan = kBlocks * kDepth;
        if (count == W) {
          for (; k + kSpan <= end; k += kSpan, even_lines.advance(kSpan)) {
            if (apart && kSpan * sizeof(T) == 64) fetch_ahead<X>(even_lines);
            add_blocks.template operator()<kBlocks>(even_lines);
          }
        } else {
          for (; k + kSpan <= end; k += kSpan) {
            add_blocks.template operator()<kBlocks>([&](int l) { return starts[l] + k; });
          }
        }
      };
      add_all.template operator()<kLineBlocks<X>>();
      add_all.template operator()<1>();
      for (; k < end; ++k) {
        for (int l = 0; l < W; ++l) column[l] = clamped(l)[k];
        add(X::load(column), k);
      }
#pragma GCC unroll 8
      for (int f = 0; f < kFew; ++f) total[f] = begin == 0 ? sum[f] : X::add(total[f], sum[f]);
    }
    for (int f = 0; f < p.few; ++f) write_thin<X>(p, first, lane_step, count, f, total[f]);
  }
}

template <class X>
void thin(const ThinBlock<typename X::T>& p) {
  static_assert(kThin == 8);
  switch (thin_width(p.few)) {
    case 1:
      // With AVX-512 one sum of 16 lines keeps the processor busy.
      if constexpr (kLineBlocks<X> == 4) return thin_lines<X, 1>(p, 0);
      else return thin_lines<X, 1>(p, long_lane_step(p, X::kWidth, 1) > 0 ? 0 : thin_groups<X, 1, 2>(p));
    case 2: return thin_lines<X, 2>(p, 0);
    case 4: return thin_lines<X, 4>(p, 0);
    case 6: return thin_lines<X, 6>(p, 0);
    default: return thin_lines<X, 8>(p, 0);
  }
}

template <class X>
void pack_a(std::int64_t m, std::int64_t k, const typename X::T* a, std::int64_t a_row, std::int64_t a_col,
            typename X::T* out) {
  pack<X, X::kRows>(m, k, a, a_row, a_col, out);
}

template <class X>
void pack_b(std::int64_t n, std::int64_t k, const typename X::T* b, std::int64_t b_row, std::int64_t b_col,
            typename X::T* out) {
  pack<X, X::kPanel * X::kWidth>(n, k, b, b_col, b_row, out);
}

// Columns of a panel that follow each other in memory.
struct Run {
  int column, length;
  std::int32_t from;
};

// Gathers columns panel by panel. A run is copied as a whole vector: what it writes past its end is written again by
// the next run, the next line, or lies in the slack after the last panel.
template <class X>
void pack_columns(std::int64_t n, std::int64_t k_end, const typename X::T* base, const std::int32_t* table,
                  const std::int32_t* columns, typename X::T* out) {
  constexpr int W = X::kWidth, kCols = X::kPanel * W;
  for (std::int64_t j = 0; j < n; j += kCols, columns += kCols, out += kCols * k_end) {
    const int cols = static_cast<int>(n - j < kCols ? n - j : kCols);
    Run runs[kCols];
    int count = 0;
    bool whole = true;
    for (int c = 0; c < cols; ++c) {
      if (c % W != 0 && columns[c] == columns[c - 1] + 1) {
        ++runs[count - 1].length;
      } else {
        runs[count++] = {c, 1, columns[c]};
      }
    }
    for (int r = 0; r < count; ++r) whole = whole && runs[r].length == W;
    if (whole && count == X::kPanel) {
      for (std::int64_t k = 0; k < k_end; ++k) {
        const typename X::T* const line = base + table[k];
        for (int v = 0; v < X::kPanel; ++v) X::store(out + k * kCols + v * W, X::load(line + runs[v].from));
      }
      continue;
    }
    for (std::int64_t k = 0; k < k_end; ++k) {
      const typename X::T* const line = base + table[k];
      for (int r = 0; r < count; ++r) {
        const Run& run = runs[r];
        X::store(out + k * kCols + run.column, X::load(line + run.from, X::mask(run.length)));
      }
    }
  }
}

// Computes the elements of kWidth products at a time, with a product in each lane: small ones have too few elements for
// a vector, and the chain of one sum keeps a processor waiting.
template <class X>
void small_batch(const SmallBatch<typename X::T>& p) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth;
  constexpr std::int64_t kPart = 64;  // of a single sum's k at a time: the lines of both operands stay in L1
  static_assert(kBlockK % kPart == 0);
  alignas(64) T a[SmallBatch<T>::kMost * W], b[SmallBatch<T>::kMost * W], column[W];
  for (std::int64_t first = 0; first < p.count; first += W) {
    const std::int64_t count = p.count - first < W ? p.count - first : W;
    const T *const from_a = p.a + first * p.a_step, *const from_b = p.b + first * p.b_step;
    T* const to = p.c + first * p.c_step;
    if (count < W) {  // lanes without a product: what lies there may be slow to multiply
      const std::int64_t used = p.m == 1 && p.n == 1 ? kPart : p.k * (p.m > p.n ? p.m : p.n);
      for (std::int64_t i = 0; i < used; ++i) X::store(a + i * W, X::zero()), X::store(b + i * W, X::zero());
    }
    const auto put = [&](V value, T* c) {
      X::store(column, value);
      for (std::int64_t l = 0; l < count; ++l) c[l * p.c_step] = column[l];
    };
    const auto add_products = [&](V sum, const T* x, const T* y, std::int64_t k_end) {
      for (std::int64_t k = 0; k < k_end; ++k) sum = X::fma(X::load(x + k * W), X::load(y + k * W), sum);
      return sum;
    };
    if (p.m == 1 && p.n == 1) {
      V total = X::zero();
      for (std::int64_t begin = 0; begin < p.k; begin += kBlockK) {
        const std::int64_t end = p.k - begin < kBlockK ? p.k : begin + kBlockK;
        V sum = X::zero();
        std::int64_t k = begin;
        if (count == W && p.a_col == 1 && p.b_row == 1) {
          constexpr int kDepth = kLineDepth<X>;
          EvenLines<X> lines_a(from_a + k, p.a_step), lines_b(from_b + k, p.b_step);
          for (; k + kDepth <= end; k += kDepth, lines_a.advance(kDepth), lines_b.advance(kDepth)) {
            V x[1][kDepth], y[1][kDepth];
            load_lines<X, 1>(lines_a, x), load_lines<X, 1>(lines_b, y);
#pragma GCC unroll 4
            for (int d = 0; d < kDepth; ++d) sum = X::fma(x[0][d], y[0][d], sum);
          }
        }
        for (; k < end; k += kPart) {
          const std::int64_t part = end - k < kPart ? end - k : kPart;
          pack<X, W>(count, part, from_a + k * p.a_col, p.a_step, p.a_col, a);
          pack<X, W>(count, part, from_b + k * p.b_row, p.b_step, p.b_row, b);
          sum = add_products(sum, a, b, part);
        }
        total = begin == 0 ? sum : X::add(total, sum);
      }
      put(total, to);
      continue;
    }
    for (std::int64_t i = 0; i < p.m; ++i) {
      pack<X, W>(count, p.k, from_a + i * p.a_row, p.a_step, p.a_col, a + i * p.k * W);
    }
    for (std::int64_t j = 0; j < p.n; ++j) {
      pack<X, W>(count, p.k, from_b + j * p.b_col, p.b_step, p.b_row, b + j * p.k * W);
    }
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        put(add_products(X::zero(), a + i * p.k * W, b + j * p.k * W, p.k), to + i * p.c_row + j);
      }
    }
  }
}

template <class X>
constexpr GemmKernels<typename X::T> kernels_of() {
  return {X::kRows,   X::kPanel * X::kWidth, &block<X>,      &thin<X>, &pack_a<X>,
          &pack_b<X>, &pack_columns<X>,      &small_batch<X>};
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA_NS
