// Normalisation: batch and layer norm, and what every device asks of their operands.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/norm.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_NORM)

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

/// Checks the operands of a norm over the last dimensions, which are `shape`; returns how many elements a row has.
VESTA_API int64_t check_row_norm(const char* op, const Tensor& input, IntSpan shape, const Tensor& weight,
                                 const Tensor& bias);

}  // namespace vesta
