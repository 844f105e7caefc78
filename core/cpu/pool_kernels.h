// The interface between max pooling and its kernels, for T = float or double.
#pragma once
#include <cstdint>
#include <type_traits>

#include <vesta/core/base/half.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// One tap of the windows of a row of outputs: window j sees x[j * stride], at index `place + j * stride` of its plane.
template <class T>
struct PoolTap {
  using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;  // as wide as T
  const T* x;
  std::int64_t stride, count;
  Place place;
  T* best;  ///< [count], the maxima so far
  Place* at;  ///< [count], their indices, negative where a window has seen nothing yet
};

/// Rows of 2 x 2 windows side by side: window (i, j) sees elements 2 j and 2 j + 1 of rows 2 i and 2 i + 1 of a plane,
/// which are `width` apart.
template <class T>
struct PoolPairs {
  const T* plane;
  std::int64_t width;
  std::int64_t rows, count;  ///< windows
  T* y;
  std::int64_t* places;
};

/// Rows of a plane, `step` elements apart, whose columns are seen one by one: row 0 begins at `place`.
template <class T>
struct PoolColumns {
  using Place = typename PoolTap<T>::Place;
  const T* x;  ///< row 0
  std::int64_t step, rows, count;  ///< rows >= 1
  Place place;
  T* best;  ///< [count], the maxima so far
  Place* at;  ///< [count], their indices
  bool fresh;  ///< whether nothing was seen before
};

/// The kernels of one instruction set. Each takes what a window sees where it is the first, larger, or NaN.
template <class T>
struct PoolKernels {
  void (*tap)(const PoolTap<T>&);
  void (*pairs)(const PoolPairs<T>&);
  /// Does the same for the channels of one window, which lie side by side: all are at `place`, the stride is 1.
  void (*channels)(const PoolTap<T>&);
  void (*columns)(const PoolColumns<T>&);
};

/// Rows [first, last) of the outputs of a plane, of which only values are needed; they see rows [first_row, last_row)
/// of the input. Rows are counted through the layers of a volume. Sizes are [layers, rows, columns].
template <class T>
struct PoolPlane {
  const T* x;  ///< where the plane begins
  T* y;  ///< where row `first` begins
  std::int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  std::int64_t first, last, first_row, last_row;
  std::int64_t line;  ///< numbers of a padded line
  bool non_temporal;  ///< whether rows of the outputs bypass the caches; they are whole lines of the cache then
  compute_t<T>* room;  ///< [(last_row - first_row) * out[2] + kPoolLines * line + 2 * kPoolSlack]
};
inline constexpr std::int64_t kPoolSlack = 16, kPoolLines = 8;

/// The kernels of one instruction set that write no indices. They return false where there is NaN, and have written
/// nothing of use then.
template <class T>
struct PoolValues {
  bool (*plane)(const PoolPlane<T>&);
  /// Does the same for an image whose channels lie side by side: sizes count pixels.
  bool (*pixels)(const PoolPlane<T>&, std::int64_t channels);
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_pool_values(vesta::cpu::PoolValues<float>& singles,
                                               vesta::cpu::PoolValues<double>& doubles,
                                               vesta::cpu::PoolValues<vesta::Half>& halves,
                                               vesta::cpu::PoolValues<vesta::BFloat16>& bfloats))
VESTA_DECLARE_ON_ISA(void register_pool_kernels(vesta::cpu::PoolKernels<float>& singles,
                                                vesta::cpu::PoolKernels<double>& doubles))
