// The primitives of core/ops/math.h for T = Tensor, so that the gradients in core/ops/pointwise can be evaluated with
// ops and thus recorded (double backward). exp, log, maximum and so on are the functions of the op list, found by
// argument-dependent lookup; here is what the op list has under another name.
#pragma once
#include <vesta/core/ops/math.h>
#include <vesta/core/ops/select.h>

namespace vesta {

/// Chooses a where `mask` (bool) holds, else b.
inline Tensor select(const Tensor& mask, const Tensor& a, const Tensor& b) { return where(mask, a, b); }

namespace math {
inline namespace VESTA_ISA_NS {
/// The maker of a constant that behaves like a Python number: it takes the dtype of the other operand.
template <>
struct Literal<Tensor> {
  static Tensor make(double value) { return wrapped(value); }
};
}  // namespace VESTA_ISA_NS
}  // namespace math

}  // namespace vesta
