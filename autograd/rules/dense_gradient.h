// Gradients of rules whose results may be sparse.
#pragma once
#include <vesta/core/ops/sparse.h>

namespace vesta::autograd::rules {

/// Converts a sparse gradient, as that of an element of a sparse tensor, to a dense one.
inline Tensor dense_gradient(const Tensor& g) { return g.is_sparse() ? to_dense(g) : g; }

}  // namespace vesta::autograd::rules
