// Comparisons and their operators, logic and bits.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/compare.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_COMPARE)

VESTA_OPERATOR(==, eq)
VESTA_OPERATOR(!=, ne)
VESTA_OPERATOR(<, lt)
VESTA_OPERATOR(<=, le)
VESTA_OPERATOR(>, gt)
VESTA_OPERATOR(>=, ge)
VESTA_OPERATOR(&, bitwise_and)
VESTA_OPERATOR(|, bitwise_or)
VESTA_OPERATOR(^, bitwise_xor)
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }

}  // namespace vesta
