// Gradients of normalisation together with those of what follows. A device that has a kernel for one saves the passes
// over memory that the gradient in between would take; without a kernel, the two run one after the other.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/norm_backward.h>
#include <vesta/core/ops/pointwise.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_NORM_BACKWARD)

/// Returns the number of an activation in _batch_norm_activation_backward; -1 for one that it does not support.
VESTA_API int64_t number_of_activation(const PointwiseInfo* info);
/// Returns the activation that has a number.
VESTA_API const PointwiseInfo& activation_of_number(int64_t number);

}  // namespace vesta
