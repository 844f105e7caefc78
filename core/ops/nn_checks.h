// What softmax, cross-entropy and batch normalisation ask of their operands, the same on every device.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Checks that `t` has a floating dtype.
VESTA_API void check_float(const Tensor& t, const char* op);
/// Checks the operands of cross_entropy over rows, all but the values of target.
VESTA_API void check_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, double smoothing);

/// Is the shape of batch normalisation: an input [batch, channels, *] with `inner` elements for each of those.
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

}  // namespace vesta
