// Arithmetic: the four operations and their operators, roots, powers, extrema of two tensors.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/arithmetic.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_ARITHMETIC)

VESTA_OPERATOR(+, add, 1)
VESTA_OPERATOR(-, sub, 1)
VESTA_OPERATOR(*, mul)
VESTA_OPERATOR(/, div)
VESTA_OPERATOR(%, remainder)
inline Tensor operator-(const Tensor& a) { return neg(a); }

}  // namespace vesta
