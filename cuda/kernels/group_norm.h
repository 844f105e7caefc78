// The arguments of group normalisation: an input [images, channels, inner], contiguous or with its channels last, and
// the statistics of each group of channels of each image.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The side of the square of channels times positions that a thread holds.
inline constexpr int64_t kGroupTile = 4;

/// Group normalisation, or with `grad` its gradient. Statistics are double for float64, else float.
struct GroupNormLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;  // of x, y and the gradient
  const char* x = nullptr;
  const char* grad = nullptr;
  char* y = nullptr;  // the result, or the gradient of x
  int64_t images = 0, channels = 0, inner = 0, groups = 1;
  bool channels_last = false;
  bool packed = false;           // a tile's rows of four elements are aligned
  double eps = 0;
  const char* weight = nullptr;  // [channels], or null: 1
  const char* bias = nullptr;    // [channels], or null: 0
  bool wide_weight = false, wide_bias = false;  // of the statistics' dtype instead of x's
  char* mean = nullptr;          // [images, groups], written, or read for the gradient; so is rstd
  char* rstd = nullptr;
  char* weight_gradient = nullptr;  // [channels] of the statistics' dtype; so is bias_gradient
  char* bias_gradient = nullptr;
  char* parts = nullptr;            // [pieces, 2, channels] of that dtype
  unsigned* counters = nullptr;     // one for each kGroupTile channels
  int64_t piece = 0, pieces = 0;    // tiles of its channels that a block sums
};

/// Queues the launch: one kernel, which writes y once and reads x twice more where a row outgrows the caches.
void group_norm(const GroupNormLaunch& l);
/// Queues the launch: two kernels, each of which reads x and the gradient.
void group_norm_gradient(const GroupNormLaunch& l);

}  // namespace vesta::cuda
