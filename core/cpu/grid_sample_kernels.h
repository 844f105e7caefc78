// The interface between grid_sampler and its kernels, for T = float or double.
#pragma once
#include <cstdint>
#include <type_traits>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/ops/grid_axis.h>

namespace vesta::cpu {

inline constexpr int64_t kGridPlaces = 128;  // of a block: their numbers and a plane's sums stay in the first cache
inline constexpr int64_t kGridGroup = 16;    // positions that take the same path together
inline constexpr int64_t kGridChains = 16;   // sums over channels, to which channels are added in turn

/// A block of positions, and what they read: two neighbours side by side, the columns, in each of two rows. Elements
/// are numbered by row and column, (0, 0), (1, 0), (0, 1), (1, 1). A neighbour outside the image is not read: its
/// weight is 0. Behind the last position, the block is filled up to a whole group.
template <class T>
struct alignas(64) GridBlock {
  using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;  // as wide as T
  T weights[4][kGridPlaces];
  T masks[4][kGridPlaces];  ///< all bits set for a neighbour that is read, else none
  T row_weights[2][kGridPlaces], column_weights[2][kGridPlaces];
  T column_slopes[2][kGridPlaces];  ///< of the columns' weights along the column; those of rows are -1 and 1
  T slopes[2][kGridPlaces];  ///< of the position along the grid's x and y
  Place rows[2][kGridPlaces];  ///< numbers of the elements (0, 0) and (1, 0) in the plane
  int64_t count;
  int64_t right;  ///< from the first column to the second: 0 in images of one column, whose second is outside
  bool whole[kGridPlaces / kGridGroup];  ///< whether all neighbours of a group are read
  bool nearest;  ///< whether element (0, 0) alone is taken, as it is
};

/// The axes of an image, and the way its elements are taken.
template <class T>
struct GridImage {
  GridAxis<T> rows, columns;
  int64_t width;
  int64_t pitch;  ///< from one element of a row to the next
  bool nearest;
  bool slopes;  ///< whether slopes are needed
};

/// Planes, `step` elements apart from one to the next.
template <class T>
struct GridPlanes {
  T* data;
  int64_t step, count;
};

/// The planes of neighbouring channels, which lie side by side in each pixel.
template <class T>
struct GridPixels {
  T* data;
  int64_t count;
};

/// The kernels of one instruction set. Those of planes and of pixels give the same bits. Outputs and their gradients
/// are, of planes, as planes; of pixels, packed: [position][channel].
template <class T>
struct GridSampleKernels {
  /// Finds what `count` <= kGridPlaces positions of a grid [count, 2] read.
  void (*find)(const T* grid, int64_t count, const GridImage<T>& image, GridBlock<T>& block);
  void (*read_planes)(const GridPlanes<const T>& x, const GridBlock<T>& block, const GridPlanes<T>& y);
  void (*read_pixels)(const GridPixels<const T>& x, const GridBlock<T>& block, T* y);
  /// Adds the gradients of outputs to those of elements.
  void (*add_planes)(const GridPlanes<const T>& g, const GridBlock<T>& block, const GridPlanes<T>& gx);
  void (*add_pixels)(const T* g, const GridBlock<T>& block, const GridPixels<T>& gx);
  /// Writes the gradient of the positions [count, 2]. Sums run over channels in an order that their number decides.
  void (*slopes_of_planes)(const GridPlanes<const T>& g, const GridPlanes<const T>& x, const GridBlock<T>& block,
                           T* grad_grid);
  /// Adds channels to the sums [2][position][chain]; their first one goes to chain 0.
  void (*add_slopes_of_pixels)(const T* g, const GridPixels<const T>& x, const GridBlock<T>& block, T* sums);
  void (*slopes_of_sums)(T* sums, const GridBlock<T>& block, T* grad_grid);
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_grid_sample(vesta::cpu::GridSampleKernels<float>& singles,
                                               vesta::cpu::GridSampleKernels<double>& doubles))
