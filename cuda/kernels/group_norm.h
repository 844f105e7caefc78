// The arguments of group normalisation: an input [images, channels, inner], contiguous or with its channels last, and
// the statistics of each group of channels of each image.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The side of the square of channels times positions that a thread holds.
inline constexpr int64_t kGroupTile = 4;

/// Returns how many accumulators share the positions of a channel by turns, for elements of so many bytes.
constexpr int64_t group_lanes(int64_t bytes) { return 128 / bytes; }
/// Returns how many positions of a channel a block sums at most: 16 for each accumulator.
constexpr int64_t group_piece(int64_t bytes) { return 16 * group_lanes(bytes); }

/// Group normalisation, or with `grad` its gradient. Statistics are double for float64, else float.
///
/// Small groups, or of few positions, are a team's, which goes over its group again for each step: one kernel forward,
/// two backward. Others take three steps as batch normalisation does: sums over pieces of each channel of each image
/// (`sums`), numbers for each of these from the sums of their group (`map`), and one map over all elements. The choice,
/// and the pieces, depend on a group's shape alone: the same bits for any batch.
struct GroupNormLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;  // of x, y and the gradient
  const char* x = nullptr;
  const char* grad = nullptr;
  char* y = nullptr;  // the result, or the gradient of x
  int64_t images = 0, channels = 0, inner = 0, groups = 1;
  bool channels_last = false;
  bool packed = false;  // by a team, a tile's rows of four elements are aligned; else 16 bytes everywhere
  double eps = 0;
  const char* weight = nullptr;  // [channels], or null: 1
  const char* bias = nullptr;  // [channels], or null: 0
  bool wide_weight = false, wide_bias = false;  // of the statistics' dtype instead of x's
  char* mean = nullptr;  // [images, groups], written, or read for the gradient; so is rstd
  char* rstd = nullptr;
  char* weight_gradient = nullptr;  // [channels] of the statistics' dtype; so is bias_gradient
  char* bias_gradient = nullptr;

  // by a team
  char* parts = nullptr;  // [pieces, 2, channels] of that dtype
  unsigned* counters = nullptr;  // one for each kGroupTile channels
  int64_t piece = 0, pieces = 0;  // tiles of its channels that a block sums

  // in three steps, in which a piece is of positions
  double* sums = nullptr;  // [pieces, images, channels, 2]
  char* map = nullptr;  // [4, images, channels] of the statistics' dtype: that of BatchNormLaunch

  int64_t depth() const { return channels / groups; }
  bool by_team() const { return depth() * inner <= 1024 || inner < 16; }
};

/// Queues the launch.
void group_norm(const GroupNormLaunch& l);
void group_norm_backward(const GroupNormLaunch& l);

}  // namespace vesta::cuda
