// The inner loops of a direct convolution, compiled once per instruction set. Internal to conv_direct.h.
#pragma once

#include <vesta/core/cpu/isa.h>

#include <cstdint>

namespace vesta::cpu {

/// A run of outputs side by side, for the channels of one panel of weights: out[p, j] (+)= sum over (c, t) of x[c *
/// x_channel + taps[t] + p] * w[c * w_channel + t * panel + j].
template <class T>
struct DirectRow {
  std::int64_t channels;  ///< of x
  const T* x;
  std::int64_t x_channel;
  const std::int32_t* taps;
  std::int64_t tap_count;
  /// If set, taps come in threes, [t], [t] + 1, [t] + 2. The first of three is left out for the first output of the
  /// row, the last of three for the last output: they lie outside the image.
  bool edges = false;
  const T* w;
  std::int64_t w_channel;
  std::int64_t pixels;  ///< outputs of the run
  std::int64_t columns;  ///< channels of the output, at most `panel`; those up to the next vector are written as well
  T* out;  ///< [pixels, panel]
  bool accumulate = false;  ///< add to out instead of overwriting it
  const T* bias = nullptr;  ///< [panel], added after everything else
};

/// The gradient of one tap's weights, for a panel of input and a panel of output channels: out[r, j] (+)= the sum over
/// images i, rows q and columns p of a[i * a_image + q * a_row + p * a_col + r] times b[i * b_image + q * b_row + p *
/// panel + j].
template <class T>
struct DirectGradient {
  std::int64_t images, rows, columns;
  const T* a;
  std::int64_t a_image, a_row, a_col;
  const T* b;
  std::int64_t b_image, b_row;
  std::int64_t inputs, outputs;  ///< channels, each at most `panel`; outputs up to the next vector are written as well
  T* out;  ///< element (r, j) at r * out_row + j
  std::int64_t out_row;
  bool accumulate = false;  ///< add to out instead of overwriting it
};

/// The kernels of one instruction set for T = float or double.
template <class T>
struct DirectKernels {
  int panel;  ///< output channels of a packed panel of weights
  void (*row)(const DirectRow<T>&);
  void (*gradient)(const DirectGradient<T>&);
  /// Packs `lines` lines of length k (element (l, i) at in[l * line + i * step]) k-major into panels; lines past the
  /// last stay undefined.
  void (*pack)(std::int64_t lines, std::int64_t k, const T* in, std::int64_t line, std::int64_t step, T* out);
  /// Writes the transpose of in[pixels, panel], of which the first `columns` columns count.
  void (*transpose)(std::int64_t pixels, std::int64_t columns, const T* in, T* out, std::int64_t out_row);
};

/// The transforms of tiles: Note [Winograd's convolution] in conv_winograd.h. Channels lie side by side, in panels of
/// DirectKernels<float>::panel; element (i, j) of a transformed tile lies `point * (6 * i + j)` behind its first.
struct WinogradKernels {
  /// Transforms `tiles` tiles of 6 x 6 pixels, 4 apart, for the first `channels` channels of a panel: pixel (i, j) of
  /// tile t at in[i * row + (4 * t + j) * panel], its transform at out + t * tile.
  void (*input)(std::int64_t tiles, std::int64_t channels, const float* in, std::int64_t row, float* out,
                std::int64_t tile, std::int64_t point);
  /// Transforms products back, to tiles of 4 x 4 pixels: pixel (i, j) of tile t at out[i * row + (4 * t + j) * panel],
  /// plus the bias of its channel (null: none). Returns whether every result is finite.
  bool (*output)(std::int64_t tiles, std::int64_t channels, const float* in, std::int64_t tile, std::int64_t point,
                 const float* bias, float* out, std::int64_t row);
  /// Transforms the 3 x 3 weights of `count` pairs of channels, for a panel of output channels: weight (i, j) of pair p
  /// at in[(9 * p + 3 * i + j) * panel], or that of (2 - i, 2 - j) if `flipped`; its transform at out + p * panel.
  void (*weights)(std::int64_t count, bool flipped, const float* in, float* out, std::int64_t point);
  /// Transforms `tiles` tiles of 4 x 4 pixels of the gradient of the outputs, for a panel: the transpose of `output`.
  void (*output_gradient)(std::int64_t tiles, const float* in, std::int64_t row, float* out, std::int64_t tile,
                          std::int64_t point);
  /// Transforms sums of products back to the gradient of the weights of `count` pairs of channels, the transpose of
  /// `weights`: pair p from in + p * pair to out[(9 * p + 3 * i + j) * panel]. Returns whether every result is finite.
  bool (*weights_gradient)(std::int64_t count, const float* in, std::int64_t pair, std::int64_t point, float* out);
};

/// Returns the transforms of the instruction set that gemm_kernels uses.
const WinogradKernels& winograd_kernels();

/// Returns the kernels of the instruction set that gemm_kernels uses, T = float or double.
template <class T>
const DirectKernels<T>& direct_kernels();

/// Returns those for pairs of bfloat16 (Note [Pairs of bfloat16] in gemm_kernel.h), or null if the instruction set in
/// use has no instruction for them, or if it has tiles as well. They pack like those of float.
const DirectKernels<float>* pair_direct_kernels();

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(const DirectKernels<float>& direct_float_kernels();
                     const DirectKernels<double>& direct_double_kernels();
                     const WinogradKernels& winograd_float_kernels())
namespace vesta::cpu::avx512_bf16 { const DirectKernels<float>& pair_direct_kernels(); }
