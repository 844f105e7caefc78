// Gradients that do not change with what they were computed from.
#pragma once
#include <vesta/autograd/node.h>

namespace vesta::autograd {

/// Returns a gradient of the shape of an op's operand, with `operand` as its edge to it, whose own gradient is passed
/// on and is zero with respect to the operand. By its formula such a gradient has none there; PyTorch, whose step takes
/// the operand, gives zeros.
VESTA_API Tensor flat_gradient(const Tensor& gradient, const Edge& operand);

}  // namespace vesta::autograd
