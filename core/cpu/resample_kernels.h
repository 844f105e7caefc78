// The interface between the driver of resampling and its kernels, for T = float or double.
#pragma once
#include <cstdint>
#include <type_traits>

#include <vesta/core/cpu/isa.h>

namespace vesta::cpu {

/// The most results of a ResampleBlock, and the most elements that one result is made of.
inline constexpr int kResampleLanes = 16, kResampleTerms = 8;

/// Neighbouring results of a line that read from one window of it. Result i is the sum of weights[k][i] times element
/// base + at[k][i] of the line, for k < terms, in this order; the k-th term is left out where at[k][i] is negative.
/// Where lines have borders, terms are not left out but read there: -0, which adds nothing.
template <class T>
struct ResampleBlock {
  using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  enum class Terms : std::uint8_t { some, all, near, beside };
  std::int64_t base;
  int terms, count;
  Terms kind;  ///< whether every lane has all terms, in one vector, and as neighbours where lanes are neighbours
  Place at[kResampleTerms][kResampleLanes];
  T weights[kResampleTerms][kResampleLanes];
};

/// A plane of lines, `width` elements each, multiplied by a matrix down its columns and another along its lines. The
/// first one is given row by row, as `row` takes it; the second one as blocks: of one line, and of `lines` lines that
/// lie one after the other, so that short lines fill the lanes.
template <class T>
struct ResamplePlane {
  const T* x;
  T* y;
  std::int64_t width, out_width;
  const std::int64_t *starts, *places;
  const T* weights;
  const ResampleBlock<T>*line, *lines_together;
  std::int64_t line_blocks, together_blocks, lines;
  std::int64_t
      rows;  ///< lines kept at a time: what was stored has left the store buffer when it is read in other pieces
  std::int64_t pitch;  ///< from line to line in `room`: the width and a border
  T* room;  ///< [rows * pitch + window], where the first line begins, behind another border; what no line covers is set
  bool non_temporal;  ///< whether results bypass the caches: whole lines of the cache, all blocks whole
};

/// The kernels of one instruction set.
template <class T>
struct ResampleKernels {
  /// Computes y[i], the sum over k < terms of weights[k] * x[places[k] * inner + i], in the order of k, for i < n.
  /// Prefetches what lies `ahead` elements behind each row, if that is not 0.
  void (*row)(const T* x, std::int64_t inner, const std::int64_t* places, const T* weights, std::int64_t terms, T* y,
              std::int64_t n, std::int64_t ahead) = nullptr;
  /// Computes the results of `count` blocks one after the other. Each block reads `window` elements from its base on.
  void (*line)(const T* x, const ResampleBlock<T>* blocks, std::int64_t count, T* y, bool non_temporal) = nullptr;
  /// Writes rows [first, last) of a plane's result.
  void (*plane)(const ResamplePlane<T>& p, std::int64_t first, std::int64_t last) = nullptr;
  int lanes = 0;  ///< the most results of a block; 0: there is no `line` and no `plane`
  int window = 0;  ///< the elements of a line that a block can read
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_resample_kernels(vesta::cpu::ResampleKernels<float>& singles,
                                                    vesta::cpu::ResampleKernels<double>& doubles))
