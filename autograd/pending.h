// Gradients that are not yet propagated through an activation. A node that supports it takes them as they are and saves
// a pass over memory: Note [Neighbours as one] in engine.cpp.
#pragma once
#include <vesta/core/ops/pointwise.h>

namespace vesta::autograd {

/// The operands of the gradient of an activation's input: the gradient of its result, and what is saved. Without
/// `grad`, the latter alone.
struct PendingGradient {
  const PointwiseInfo* info = nullptr;
  Tensor grad, used;
  Tensor kept = {};  // what a device's own form of the gradient reads instead of `used`, where there is one
  double params[kMaxParams] = {};
  /// Computes the gradient of the input.
  Tensor resolve() const {
    const Tensor* operands[] = {&grad, &used};
    return pointwise_backward(*info, 0, operands, 2, params);
  }
};

}  // namespace vesta::autograd
