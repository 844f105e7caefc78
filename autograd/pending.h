// Gradients that have still to be taken through an activation. A node that knows how takes them as they are and saves
// the pass over memory: Note [Neighbours as one] in engine.cpp.
#pragma once
#include <vesta/core/ops/pointwise.h>

namespace vesta::autograd {

/// The gradient of an activation's result, and what that of its input is computed from.
struct PendingGradient {
  const PointwiseInfo* info = nullptr;
  Tensor grad, used;
  double params[kMaxParams] = {};
  /// Computes the gradient of the input.
  Tensor resolve() const {
    const Tensor* operands[] = {&grad, &used};
    return pointwise_gradient(*info, 0, operands, 2, params);
  }
};

}  // namespace vesta::autograd
