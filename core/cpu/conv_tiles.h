// The inner loops of a direct convolution: register tiles of pixels (for the weight gradient: of input channels) times
// vectors of output channels. Every value of x is broadcast, every vector of weights is read once per tile. One source
// for all instruction sets and kinds of elements, like gemm_tiles.h, and for files of kernels only.
#pragma once

#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/gemm_vectors.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int kPanelVectors = 2;

// Most pixels of a tile: sums, one line of weights and one broadcast fill the registers. benchmarks/cpp/dnn_bench: 14
// cut the usual widths 7, 14, 28 and 56 into equal tiles; wider panels of fewer pixels read their weights too often.
#if defined(VESTA_ISA_avx512)
constexpr int most_pixels(int) { return 14; }
#else
constexpr int most_pixels(int vectors) { return vectors == 1 ? 8 : 6; }
#endif

enum Edge : unsigned { kNone = 0, kLeft = 1, kRight = 2 };

// Adds one tap to the sums of pixels [kFirst, kEnd).
template <class X, int R, int N, int kFirst, int kEnd>
inline __attribute__((always_inline)) void add_tap(const typename X::T* line, const typename X::T* w,
                                                   typename X::V (&sum)[R][N]) {
  asm volatile("" ::: "memory");  // no load moves up into the previous tap: there is no register left for it
  typename X::V vw[N];
#pragma GCC unroll 16
  for (int v = 0; v < N; ++v) vw[v] = X::load(w + v * X::kWidth);
#pragma GCC unroll 16
  for (int r = kFirst; r < kEnd; ++r) {
    const typename X::V vx = X::broadcast(line + r);
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) sum[r][v] = X::fma(vx, vw[v], sum[r][v]);
  }
}

// One register tile: R pixels times N vectors, at the edges kEdges of its row.
template <class X, int R, int N, unsigned kEdges>
void tile(const DirectRow<typename X::T>& p, const typename X::T* x, typename X::T* out) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, kPanel = kPanelVectors * W;
  V sum[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) sum[r][v] = X::zero();
  }
  const T* channel_w = p.w;
  const std::int32_t* const taps_end = p.taps + p.tap_count;
  for (std::int64_t c = 0; c < p.channels; ++c, x += p.x_channel, channel_w += p.w_channel) {
    const T* w = channel_w;
    if constexpr (kEdges == kNone) {
      for (const std::int32_t* tap = p.taps; tap < taps_end; ++tap, w += kPanel) {
        add_tap<X, R, N, 0, R>(x + *tap, w, sum);
      }
    } else {
      for (const std::int32_t* tap = p.taps; tap < taps_end; tap += 3, w += 3 * kPanel) {
        add_tap<X, R, N, (kEdges & kLeft) != 0, R>(x + *tap, w, sum);
        add_tap<X, R, N, 0, R>(x + *tap + 1, w + kPanel, sum);
        add_tap<X, R, N, 0, R - ((kEdges & kRight) != 0)>(x + *tap + 2, w + 2 * kPanel, sum);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) {
      T* const to = out + r * kPanel + v * W;
      V value = sum[r][v];
      if (p.accumulate) value = X::add(X::load(to), value);
      if (p.bias != nullptr) value = X::add(value, X::load(p.bias + v * W));
      X::store(to, value);
    }
  }
}

template <class T>
using TileFn = void (*)(const DirectRow<T>&, const T*, T*);

// Tiles N vectors wide: index [pixels - 1][edges].
template <class X, int N>
struct TileTable {
  TileFn<typename X::T> at[most_pixels(N)][4];
  constexpr TileTable() : at{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    at[R - 1][kNone] = &tile<X, R, N, kNone>;
    at[R - 1][kLeft] = &tile<X, R, N, kLeft>;
    at[R - 1][kRight] = &tile<X, R, N, kRight>;
    at[R - 1][kLeft | kRight] = &tile<X, R, N, kLeft | kRight>;
    if constexpr (R < most_pixels(N)) fill<R + 1>();
  }
};

// Cuts the run into tiles of about equal width.
template <class X, int N>
void walk(const DirectRow<typename X::T>& p) {
  static constexpr TileTable<X, N> table;
  constexpr int kMost = most_pixels(N);
  std::int64_t begin = 0;
  for (std::int64_t left = (p.pixels + kMost - 1) / kMost; left > 0; --left) {
    const std::int64_t pixels = (p.pixels - begin + left - 1) / left;
    const unsigned edges =
        p.edges ? (begin == 0 ? kLeft : kNone) | (begin + pixels == p.pixels ? kRight : kNone) : kNone;
    table.at[pixels - 1][edges](p, p.x + begin, p.out + begin * kPanelVectors * X::kWidth);
    begin += pixels;
  }
}

template <class X>
void row(const DirectRow<typename X::T>& p) {
  if (p.columns <= X::kWidth) return walk<X, 1>(p);
  return walk<X, kPanelVectors>(p);
}

// One register tile of a weight gradient: R input channels times N vectors of output channels.
template <class X, int R, int N>
void gradient_tile(const DirectGradient<typename X::T>& p, const typename X::T* first_a, typename X::T* out) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, kPanel = kPanelVectors * W;
  V sum[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) sum[r][v] = X::zero();
  }
  for (std::int64_t i = 0; i < p.images; ++i) {
    for (std::int64_t q = 0; q < p.rows; ++q) {
      const T* a = first_a + i * p.a_image + q * p.a_row;
      const T* b = p.b + i * p.b_image + q * p.b_row;
      for (const T* const end = b + p.columns * kPanel; b < end; a += p.a_col, b += kPanel) {
        add_tap<X, R, N, 0, R>(a, b, sum);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < N; ++v) {
      T* const to = out + r * p.out_row + v * W;
      X::store(to, p.accumulate ? X::add(X::load(to), sum[r][v]) : sum[r][v]);
    }
  }
}

template <class T>
using GradientFn = void (*)(const DirectGradient<T>&, const T*, T*);

template <class X, int N>
struct GradientTable {
  GradientFn<typename X::T> at[most_pixels(N)];
  constexpr GradientTable() : at{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    at[R - 1] = &gradient_tile<X, R, N>;
    if constexpr (R < most_pixels(N)) fill<R + 1>();
  }
};

// Cuts the input channels into tiles of about equal height.
template <class X, int N>
void walk_gradient(const DirectGradient<typename X::T>& p) {
  static constexpr GradientTable<X, N> table;
  constexpr int kMost = most_pixels(N);
  std::int64_t begin = 0;
  for (std::int64_t left = (p.inputs + kMost - 1) / kMost; left > 0; --left) {
    const std::int64_t height = (p.inputs - begin + left - 1) / left;
    table.at[height - 1](p, p.a + begin, p.out + begin * p.out_row);
    begin += height;
  }
}

template <class X>
void gradient(const DirectGradient<typename X::T>& p) {
  if (p.outputs <= X::kWidth) return walk_gradient<X, 1>(p);
  return walk_gradient<X, kPanelVectors>(p);
}

// Whole vectors of pixels at a time: with few taps to sum, the transposition takes as long as the sums.
template <class X>
void transpose(std::int64_t pixels, std::int64_t columns, const typename X::T* in, typename X::T* out,
               std::int64_t out_row) {
  constexpr int W = X::kWidth, kDepth = kLineDepth<X>, kSpan = kLineBlocks<X> * kDepth;
  constexpr std::int64_t kPanel = kPanelVectors * W;
  std::int64_t c = 0;
  const auto rest = [&](std::int64_t i, std::int64_t count) {  // of the pixels, for up to four channels
    typename X::T* const to = out + c * out_row;
    for (; count == 4 && i + 4 <= pixels; i += 4) transpose4(in + i * kPanel + c, kPanel, to + i, out_row);
    for (; i < pixels; ++i) {
      for (std::int64_t r = 0; r < count; ++r) to[r * out_row + i] = in[i * kPanel + c + r];
    }
  };
  while (c + kSpan <= columns) {
    std::int64_t i = 0;
    for (; i + W <= pixels; i += W) {
      typename X::V v[kLineBlocks<X>][kDepth];
      load_lines<X, kLineBlocks<X>>(EvenLines<X>(in + i * kPanel + c, kPanel), v);
#pragma GCC unroll 16
      for (int d = 0; d < kSpan; ++d) X::store(out + (c + d) * out_row + i, v[d / kDepth][d % kDepth]);
    }
    for (const std::int64_t end = c + kSpan; c < end; c += 4) rest(i, 4);
  }
  for (; c + 4 <= columns; c += 4) rest(0, 4);
  if (c < columns) rest(0, columns - c);
}

template <class X>
constexpr DirectKernels<typename X::T> kernels_of() {
  constexpr int kPanel = kPanelVectors * X::kWidth;
  return {kPanel, &row<X>, &gradient<X>, &pack<X, kPanel>, &transpose<X>};
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA_NS
