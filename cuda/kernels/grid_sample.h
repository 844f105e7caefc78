// The arguments of grid_sampler's kernels: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/core/ops/grid_axis.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A reading of images [batch, channels, height, width], as planes or as pixels (channels last), at the positions of a
/// grid [batch, out_height * out_width, 2]; or its gradients. Outputs and their gradients are planes.
struct GridSampleLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t batch = 0, channels = 0, height = 0, width = 0;
  int64_t places = 0;  // of an image
  bool nearest = false, align_corners = false;
  GridPadding padding = GridPadding::zeros;
  bool pixels = false;  // the layout of input and input_grad
  const void *input = nullptr, *grid = nullptr, *grad = nullptr;
  void *output = nullptr, *grid_grad = nullptr, *input_grad = nullptr;

  // for the gradient of the input, which adds up sorted positions
  bool wide = false;  // keys, and numbers of positions, have 64 bits, else 32
  void* keys = nullptr;
  const void* order = nullptr;  // the numbers of the positions with these keys
  void* starts = nullptr;       // cells() + 1 numbers
  void* weights = nullptr;      // [batch * places][4] of the type of computation

  /// Returns the number of cells of an image, one for each set of neighbours; a position has the number of its cell for
  /// a key, or else, if it has no neighbour, batch * cells().
  VESTA_HD int64_t cells() const { return nearest ? height * width : (height + 1) * (width + 1); }
};

/// Queues output = the elements at the positions. An element is the sum of the four neighbours in the order (row,
/// column) (0, 0), (1, 0), (0, 1), (1, 1), each times its weight, as on the CPU.
void run_grid_sample(const GridSampleLaunch& l);
/// Queues the gradient of the grid.
void run_grid_sample_slopes(const GridSampleLaunch& l);
/// Queues the keys of all positions, and the weights of their neighbours.
void run_grid_sample_keys(const GridSampleLaunch& l);
/// Queues the gradient of the input, of sorted keys: each element adds up the positions of its cells, in order.
void run_grid_sample_sums(const GridSampleLaunch& l);

}  // namespace vesta::cuda
