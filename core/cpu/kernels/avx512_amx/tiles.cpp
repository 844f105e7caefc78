// Products of bfloat16 with AMX: Note [Tiles of pairs] in gemm_kernel.h. A tour: multiply_block() reads its operands in
// place where they lie in whole steps of pairs, and copies what does not; multiply_rows() goes panel by panel of b and
// tile by tile of a; add_products() is the loop over tiles, finish() adds to what is there, and the bias.
// multiply_thin() multiplies lines in place by a few vectors.
#include <vesta/core/cpu/gemm_tiles.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

using std::int64_t;

constexpr int kSide = 16;  // rows of a tile, and pairs or floats in a row
constexpr int kTileRows = 2 * kSide, kTileCols = 2 * kSide;  // of the sums that are held in tiles together
constexpr int64_t kGathered = 2 * kTileRows;  // rows of a that are copied at a time: 64 KiB
constexpr int kThinTiles = 4;  // groups of lines that pass by one tile of vectors

static_assert(kBlockK % kTileSteps == 0 && kTileSteps == kSide);

/// What LDTILECFG reads. Tiles 0 to 3 hold sums, 4 and 5 rows of a, 6 and 7 of b.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

/// The tiles of a product in use for one scope; sums and b are `columns` floats wide.
class Tiles {
 public:
  explicit Tiles(int columns) {
    TileConfig config;
    for (int t = 0; t < 8; ++t) {
      config.rows[t] = kSide;
      config.row_bytes[t] = static_cast<std::uint16_t>(4 * (t == 4 || t == 5 ? kSide : columns));
    }
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~Tiles() { asm volatile("tilerelease"); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// The compiler's intrinsics do not say that they read memory. Strides count floats.
template <int kTile>
inline void load_tile(const float* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(4 * stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void store_tile(float* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(4 * stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kSums, int kA, int kB>
inline void multiply_tiles() {
  asm volatile("tdpbf16ps %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"i"(kB), "i"(kA), "i"(kSums));
}

// Computes the sums of R times N tiles over `steps` steps of pairs.
template <int R, int N>
void add_products(const float* a, int64_t a_row, const float* b, int64_t b_row, int64_t steps, float* out,
                  int64_t out_row) {
  clear_tile<0>();
  if constexpr (N > 1) clear_tile<1>();
  if constexpr (R > 1) clear_tile<2>();
  if constexpr (R > 1 && N > 1) clear_tile<3>();
  for (; steps > 0; --steps, a += kSide, b += kSide * b_row) {
    load_tile<6>(b, b_row);
    load_tile<4>(a, a_row);
    multiply_tiles<0, 4, 6>();
    if constexpr (N > 1) {
      load_tile<7>(b + kSide, b_row);
      multiply_tiles<1, 4, 7>();
    }
    if constexpr (R > 1) {
      load_tile<5>(a + kSide * a_row, a_row);
      multiply_tiles<2, 5, 6>();
      if constexpr (N > 1) multiply_tiles<3, 5, 7>();
    }
  }
  store_tile<0>(out, out_row);
  if constexpr (N > 1) store_tile<1>(out + kSide, out_row);
  if constexpr (R > 1) store_tile<2>(out + kSide * out_row, out_row);
  if constexpr (R > 1 && N > 1) store_tile<3>(out + kSide * out_row + kSide, out_row);
}

using AddProducts = void (*)(const float*, int64_t, const float*, int64_t, int64_t, float*, int64_t);
constexpr AddProducts kAddProducts[2][2] = {{&add_products<1, 1>, &add_products<1, 2>},
                                            {&add_products<2, 1>, &add_products<2, 2>}};

// Writes sums[rows, cols] to row i and column j of c, in the order of a float tile: what is there, the biases.
void finish(const Block<float>& p, int64_t i, int64_t j, int rows, int cols, const float* sums) {
  for (int v = 0; v < cols; v += kSide) {
    const __mmask16 mask = VecF32::mask(cols - v < kSide ? cols - v : kSide);
    const __m512 bias = p.bias != nullptr ? VecF32::load(p.bias + j + v, mask) : VecF32::zero();
    for (int r = 0; r < rows; ++r) {
      float* const to = p.c + (i + r) * p.c_row + j + v;
      __m512 value = VecF32::load(sums + r * kTileCols + v);
      if (p.accumulate) value = VecF32::add(VecF32::load(to, mask), value);
      if (p.bias != nullptr) value = VecF32::add(value, bias);
      if (p.row_bias != nullptr) value = VecF32::add(value, VecF32::broadcast(p.row_bias + i + r));
      VecF32::store(to, value, mask);
    }
  }
}

/// Rows of a, from number `first` on, that tiles are read from in place: in groups of kTileRows, `group` apart. Rows up
/// to a multiple of kSide are read.
struct Rows {
  int64_t first, count;
  const float* data;
  int64_t row, group;
};

// Copies a panel of b, filled up with zeros to whole steps.
void copy_panel(const Block<float>& p, const float* from, int cols, float* to) {
  const __mmask16 low = VecF32::mask(cols < kSide ? cols : kSide);
  const __mmask16 high = VecF32::mask(cols < kSide ? 0 : cols - kSide);
  int64_t k = 0;
  for (; k < p.k; ++k, to += kTileCols) {
    const float* const line = p.b_table != nullptr ? from + p.b_table[k] : from + k * p.b_row;
    VecF32::store(to, VecF32::load(line, low));
    VecF32::store(to + kSide, VecF32::load(line + kSide, high));
  }
  for (; k % kSide != 0; ++k, to += kTileCols) {
    VecF32::store(to, VecF32::zero());
    VecF32::store(to + kSide, VecF32::zero());
  }
}

// Multiplies rows by all of b, panel by panel.
void multiply_rows(const Block<float>& p, const Rows& rows) {
  alignas(64) float panel[kBlockK * kTileCols];
  alignas(64) float sums[kTileRows * kTileCols];
  const bool packed = p.b_table == nullptr && p.b_tile != kTileCols;
  const bool plain = !p.accumulate && p.bias == nullptr && p.row_bias == nullptr;
  const int64_t steps = (p.k + kSide - 1) / kSide;
  const float* b = p.b;
  for (int64_t j = 0; j < p.n; j += kTileCols, b += p.b_tile) {
    const int cols = static_cast<int>(p.n - j < kTileCols ? p.n - j : kTileCols);
    const float* from = b;
    int64_t b_row = p.b_row;
    if (p.b_table != nullptr || p.k % kSide != 0 || (!packed && cols % kSide != 0)) {
      copy_panel(p, b, cols, panel);
      from = panel, b_row = kTileCols;
    }
    const bool whole = plain && cols % kSide == 0;
    for (int64_t i = 0; i < rows.count; i += kTileRows) {
      const int height = static_cast<int>(rows.count - i < kTileRows ? rows.count - i : kTileRows);
      const auto add = kAddProducts[height > kSide][cols > kSide];
      const float* const a = rows.data + i / kTileRows * rows.group;
      if (whole && height % kSide == 0) {
        add(a, rows.row, from, b_row, steps, p.c + (rows.first + i) * p.c_row + j, p.c_row);
      } else {
        add(a, rows.row, from, b_row, steps, sums, kTileCols);
        finish(p, rows.first + i, j, height, cols, sums);
      }
    }
  }
}

// Writes rows of `to`, `to_row` apart, from a matrix of which row r is at from + r * row and its elements at `step`.
void copy_rows(int64_t rows, int64_t k_end, const float* from, int64_t row, int64_t step, float* to, int64_t to_row) {
  if (step == 1) {
    for (int64_t r = 0; r < rows; ++r) __builtin_memcpy(to + r * to_row, from + r * row, sizeof(float) * k_end);
    return;
  }
  int64_t r0 = 0;
  for (; row == 1 && r0 + kSide <= rows; r0 += kSide) {  // transposed by squares
    int64_t k = 0;
    for (; k + kSide <= k_end; k += kSide) {
      VecF32::V v[4][4];
      load_lines<VecF32, 4>(EvenLines<VecF32>(from + r0 + k * step, step), v);
#pragma GCC unroll 16
      for (int d = 0; d < kSide; ++d) VecF32::store(to + (r0 + d) * to_row + k, v[d / 4][d % 4]);
    }
    for (; k < k_end; ++k) {
      for (int d = 0; d < kSide; ++d) to[(r0 + d) * to_row + k] = from[r0 + d + k * step];
    }
  }
  for (; r0 < rows; ++r0) {
    for (int64_t k = 0; k < k_end; ++k) to[r0 * to_row + k] = from[r0 * row + k * step];
  }
}

void multiply_block(const Block<float>& p) {
  const Tiles tiles(kSide);
  const bool in_place = p.a_table == nullptr && p.a_col == 1 && p.k % kSide == 0;
  const int64_t whole = in_place ? p.m / kSide * kSide : 0;
  if (whole > 0) multiply_rows(p, {0, whole, p.a, p.a_row, p.a_tile});
  if (whole == p.m) return;
  alignas(64) float room[kGathered * kBlockK];
  const int64_t row = (p.k + kSide - 1) / kSide * kSide;
  for (int64_t i = whole; i < p.m;) {
    // up to the end of a group of rows
    const int64_t end = i % kTileRows != 0 ? i - i % kTileRows + kTileRows : i + kGathered;
    const int64_t count = (end < p.m ? end : p.m) - i;
    for (int64_t g = 0; g < count; g += kTileRows) {
      const int64_t height = count - g < kTileRows ? count - g : kTileRows, at = i + g;
      float* const to = room + g * row;
      if (p.a_table != nullptr) {
        for (int64_t r = 0; r < height; ++r) copy_rows(1, p.k, p.a + p.a_table[at + r], 0, 1, to + r * row, row);
      } else {
        copy_rows(height, p.k, p.a + at / kTileRows * p.a_tile + at % kTileRows * p.a_row, p.a_row, p.a_col, to, row);
      }
      for (int64_t r = 0; r < height && row != p.k; ++r) {
        for (int64_t k = p.k; k < row; ++k) to[r * row + k] = 0;
      }
    }
    multiply_rows(p, {i, count, room, row, kTileRows * row});
    i += count;
  }
}

/// Lines that are multiplied together, in groups of kSide: number l of group g is `first + l * lane + g * group`.
struct Lines {
  int64_t first, lane, group;
  int64_t at(int64_t i) const { return first + i % kSide * lane + i / kSide * group; }
};

// Adds the products of T groups of kSide lines, `line` apart, over one step.
template <int T>
inline void add_thin_step(const float* in, int64_t line, int64_t group) {
  load_tile<4>(in, line);
  multiply_tiles<0, 4, 6>();
  if constexpr (T > 1) load_tile<5>(in + group, line), multiply_tiles<1, 5, 6>();
  if constexpr (T > 2) load_tile<4>(in + 2 * group, line), multiply_tiles<2, 4, 6>();
  if constexpr (T > 3) load_tile<5>(in + 3 * group, line), multiply_tiles<3, 5, 6>();
}

// Copies pairs [k, end) of `count` lines to rows of kSide, filled up with zeros.
void copy_step(const ThinBlock<float>& p, const Lines& lines, int64_t count, int64_t k, int64_t end, float* to) {
  const __mmask16 mask = VecF32::mask(static_cast<int>(end - k < kSide ? end - k : kSide));
  const float* const in = p.in + k;
  for (int64_t l = 0; l < count; ++l) VecF32::store(to + l * kSide, VecF32::load(in + lines.at(l) * p.line, mask));
}

// Multiplies `count` lines, T groups at most.
template <int T>
void thin_tiles(const ThinBlock<float>& p, const Lines& lines, int64_t count, int width) {
  constexpr int kLines = T * kSide;
  alignas(64) float copied[kLines * kSide] = {}, sums[kLines * kThin], totals[kLines * kThin];
  alignas(64) float last[kSide * kThin] = {};
  const float* const in = p.in + lines.first * p.line;
  const int64_t lane = lines.lane * p.line, group = lines.group * p.line;
  for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
    const int64_t end = p.k - k0 < kBlockK ? p.k : k0 + kBlockK;
    clear_tile<0>();
    if constexpr (T > 1) clear_tile<1>();
    if constexpr (T > 2) clear_tile<2>();
    if constexpr (T > 3) clear_tile<3>();
    for (int64_t k = k0; k < end; k += kSide) {
      const float* vectors = p.vectors + k * width;
      if (end - k < kSide) {
        __builtin_memcpy(last, vectors, sizeof(float) * (end - k) * width);
        vectors = last;
      }
      load_tile<6>(vectors, width);
      if (end - k >= kSide && count == kLines) {
        add_thin_step<T>(in + k, lane, group);
      } else {
        copy_step(p, lines, count, k, end, copied);
        add_thin_step<T>(copied, kSide, kSide * kSide);
      }
    }
    float* const to = k0 == 0 ? totals : sums;
    store_tile<0>(to, width);
    if constexpr (T > 1) store_tile<1>(to + kSide * width, width);
    if constexpr (T > 2) store_tile<2>(to + 2 * kSide * width, width);
    if constexpr (T > 3) store_tile<3>(to + 3 * kSide * width, width);
    for (int e = 0; e < kLines * width && k0 > 0; ++e) totals[e] = totals[e] + sums[e];
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t l = lines.at(i);
    for (int64_t f = 0; f < p.few; ++f) {
      float value = p.k > 0 ? totals[i * width + f] : 0;
      if (p.line_bias != nullptr) value = value + p.line_bias[l];
      if (p.few_bias != nullptr) value = value + p.few_bias[f];
      p.out[l * p.out_line + f * p.out_few] = value;
    }
  }
}

void multiply_thin(const ThinBlock<float>& p) {
  constexpr int64_t kLines = kThinTiles * kSide;
  const int width = static_cast<int>(thin_width(p.few));
  const Tiles tiles(width);
  const int64_t long_step = long_lane_step(p, kSide, kThinTiles);
  for (int64_t l = 0; l < long_step; l += kThinTiles) thin_tiles<kThinTiles>(p, {l, long_step, 1}, kLines, width);
  for (int64_t l0 = long_step * kSide; l0 < p.lines; l0 += kLines) {
    const Lines lines{l0, 1, kSide};
    const int64_t count = p.lines - l0 < kLines ? p.lines - l0 : kLines;
    switch ((count + kSide - 1) / kSide) {
      case 1: thin_tiles<1>(p, lines, count, width); break;
      case 2: thin_tiles<2>(p, lines, count, width); break;
      case 3: thin_tiles<3>(p, lines, count, width); break;
      default: thin_tiles<kThinTiles>(p, lines, count, width);
    }
  }
}

void pack_rows(int64_t m, int64_t k, const float* a, int64_t a_row, int64_t a_col, float* out) {
  copy_rows(m, k, a, a_row, a_col, out, k);
}

void pack_panels(int64_t n, int64_t k, const float* b, int64_t b_row, int64_t b_col, float* out) {
  pack<VecF32, kTileCols>(n, k, b, b_col, b_row, out);
}

// Convolutions do not take these kernels, so there are no columns to gather.
constexpr GemmKernels<float> kProducts = {.tile_rows = kTileRows,
                                          .tile_cols = kTileCols,
                                          .block = &multiply_block,
                                          .thin = &multiply_thin,
                                          .pack_a = &pack_rows,
                                          .pack_b = &pack_panels,
                                          .pack_columns = nullptr,
                                          .packs_rows = true};

}  // namespace

const PairKernels& pair_kernels() {
  static const PairKernels kernels = {kProducts, avx512_bf16::pair_kernels().interleave,
                                      avx512_bf16::pair_kernels().narrow};
  return kernels;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
