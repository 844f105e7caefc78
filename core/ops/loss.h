// Losses, and what every device asks of their operands.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/loss.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_LOSS)

/// Checks logits [N, C], class numbers [N] and class weights [C].
VESTA_API void check_class_target(const Tensor& input, const Tensor& target, const Tensor& weight, const char* op);
/// Checks the operands of cross-entropy over rows, all but the values of target.
VESTA_API void check_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, double smoothing);

}  // namespace vesta
