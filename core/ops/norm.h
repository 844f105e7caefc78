// Normalisation: batch and layer norm, and checks of their operands that all devices share.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/norm.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_NORM)

/// The shape of batch normalisation: an input [batch, channels, *] with `inner` elements for each of those.
struct BatchNormShape {
  int64_t batch, channels, inner;
  bool update;  // the running statistics are written
  VESTA_API explicit BatchNormShape(const Tensor& input);
  int64_t count() const { return batch * inner; }
};
/// Checks batch normalisation's operands.
VESTA_API BatchNormShape batch_norm_shape(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                          const Tensor& running_mean, const Tensor& running_var, bool training);
/// Returns the dtype of batch normalisation's statistics: float64 for float64 input, float32 for all others.
constexpr DType statistics_dtype(DType d) { return d == DType::float64 ? DType::float64 : DType::float32; }

/// Checks the operands of a norm over the last dimensions, which are `shape`; returns the number of elements per row.
VESTA_API int64_t check_row_norm(const char* op, const Tensor& input, IntSpan shape, const Tensor& weight,
                                 const Tensor& bias);

/// Returns rms_norm's eps where none is given: the distance from 1 to the next number of the dtype of statistics.
VESTA_API double rms_norm_eps(DType d);

/// The shape of group normalisation: `images` times `groups` rows of `depth` channels, with `inner` elements for each.
struct GroupNormShape {
  int64_t images, channels, inner, groups, depth;
  /// Checks the operands of `op`.
  VESTA_API GroupNormShape(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                           int64_t c, int64_t hxw, int64_t group);
  int64_t rows() const { return images * groups; }
  int64_t row() const { return depth * inner; }
};

}  // namespace vesta
