// Pointwise ops: their gradients stand in the structs; nothing is written by hand for a single op.
#include <vesta/autograd/rules/tensor_math.h>

#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/core/ops/pointwise/trigonometric.h>

namespace vesta::autograd::rules {

void register_pointwise() {
#define VESTA_X(name, Struct, ...) record_pointwise<ops::name, def::Struct>();
  VESTA_POINTWISE(VESTA_X, VESTA_X, VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::autograd::rules
