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

/// Its gradient: `y` of `base` is that of x.
struct LayerNormGradientLaunch {
  LayerNormLaunch base;
  const char* grad = nullptr;
  char* weight_gradient = nullptr;  // [n] of the statistics' dtype; so is bias_gradient
  char* bias_gradient = nullptr;
  char* parts = nullptr;            // [pieces, 2, n] of that dtype
  unsigned* counters = nullptr;     // one for each tile of kNormTile columns
  int64_t piece = 0, pieces = 0;    // rows that a block sums
};

/// Queues the launch: one kernel, which reads x and writes y once.
void layer_norm(const LayerNormLaunch& l);
/// Queues the launch: two kernels, each of which reads x and the gradient once.
void layer_norm_gradient(const LayerNormGradientLaunch& l);

}  // namespace vesta::cuda
