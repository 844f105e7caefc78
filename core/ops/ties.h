// The choice among equal elements.
//
// Note [Which of equals]
// A program sees which of several equal elements an index refers to, so topk, kthvalue and mode choose as PyTorch does
// on the CPU: by the same algorithms over pairs of a value and an index that are compared by their values alone. One
// thread computes a line, so the choice depends on the line and the arguments alone. A device without a kernel of its
// own takes the stable order. NaNs are equal and larger than any number; PyTorch's mode takes them for different
// numbers in an order that its sort does not define.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/ties.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_TIES)

}  // namespace vesta
