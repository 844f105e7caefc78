// The arguments of layer and root mean square normalisation: contiguous rows, and the statistics of each.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int64_t kNormTile = 32;  // columns that a block of the weights' gradient sums

/// Layer normalisation of `rows` contiguous rows of n > 0 columns. Statistics are double for float64, else float.
struct LayerNormLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;  // of x, y and the gradient
  const char* x = nullptr;
  char* y = nullptr;
  int64_t rows = 0, n = 0;
  double eps = 0;
  const char* weight = nullptr;  // [n], or null: 1
  const char* bias = nullptr;    // [n], or null: 0
  bool wide_vectors = false;     // they are of the statistics' dtype instead of x's
  char* mean = nullptr;  // [rows], written, or read for the gradient; so is rstd. Null: 0, by the root mean square
  char* rstd = nullptr;
  bool packed = false;  // rows and vectors consist of aligned packs
};

/// The distribution over blocks of a gradient's rows, if they fit into registers: teams of `width` threads, each of
/// which has up to `columns` columns a thread and `piece` rows in turn. It depends on the shape alone: any GPU gives
/// the same bits.
struct NormTiles {
  unsigned width = 0, threads = 0;  // of a team, of a block
  int columns = 0;
  int64_t piece = 0, blocks = 0;
  NormTiles() = default;
  NormTiles(int64_t rows, int64_t n) {
    columns = n <= 2048 ? 8 : 16, width = 1;
    while (int64_t(width) * columns < n) width *= 2;
    threads = width > 32 ? width : 256;
    // what fits on the largest GPUs at once: three or two blocks of 256 threads on a multiprocessor
    const int64_t most = int64_t(columns == 8 ? 396 : 264) * 256 / threads, teams = threads / width;
    piece = (rows + most * teams - 1) / (most * teams), piece = piece < 4 ? 4 : piece;
    blocks = (rows + piece * teams - 1) / (piece * teams);
  }
  static constexpr int64_t kMost = 8192;  // columns of a row
};

/// Its gradient: `y` of `base` is that of x. Packed rows of at most NormTiles::kMost columns, but of float64, are read
/// once, by `tiles`: a block writes its part of the weights' gradients beside that of x. Of others x and the gradient
/// are read again for these.
struct LayerNormGradientLaunch {
  LayerNormLaunch base;
  const char* grad = nullptr;
  char* weight_gradient = nullptr;  // [n] of the statistics' dtype; so is bias_gradient
  char* bias_gradient = nullptr;
  char* parts = nullptr;            // [pieces, 2, n] of that dtype
  unsigned* counters = nullptr;     // one for each tile of kNormTile columns
  int64_t piece = 0, pieces = 0;    // rows that a block sums
  NormTiles tiles;
  bool reads_once() const { return base.packed && base.dtype != DType::float64 && base.n <= NormTiles::kMost; }
};

/// Queues the launch: one kernel, which reads x and writes y once.
void layer_norm(const LayerNormLaunch& l);
/// Queues the launch: two kernels.
void layer_norm_backward(const LayerNormGradientLaunch& l);

}  // namespace vesta::cuda
