// Defines what ops.h declares. Nothing here is written by hand for a single op.
#include <vesta/core/ops/ops.h>

#include <vesta/core/backend.h>
#include <vesta/core/ops/pointwise_traits.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/core/ops/pointwise/trigonometric.h>

namespace vesta {

namespace ops {
#define VESTA_X_UNARY(name, Struct, params, args) constinit PointwiseOp<decltype(sig::name::call)> name(#name);
#define VESTA_X_BINARY VESTA_X_UNARY
#define VESTA_X_TERNARY(name, Struct, first, second, third) VESTA_X_UNARY(name, Struct, (), ())
#define VESTA_X_STRUCTURED(R, name, params, args) constinit Op<decltype(sig::name::call)> name(#name);
VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_BINARY, VESTA_X_TERNARY)
VESTA_STRUCTURED(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
#undef VESTA_X_UNARY
#undef VESTA_X_BINARY
#undef VESTA_X_TERNARY
#undef VESTA_X_STRUCTURED
}  // namespace ops

namespace {

// The kernel of every pointwise op on every device: promotion, broadcasting and memory are the same everywhere, and
// the device only runs the plan.
template <auto& op, class... A>
Tensor run_pointwise(A... a) {
  const Tensor* in[3] = {};
  double params[kMaxParams] = {};
  Out out;
  size_t i = 0, p = 0;
  auto see = [&](auto&& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    if constexpr (std::is_same_v<V, Tensor>) in[i++] = &v;
    else if constexpr (std::is_same_v<V, double>) params[p++] = v;
    else out = v;
  };
  (see(a), ...);
  return pointwise(op.info, in, params, out);
}

template <auto& op, class R, class... A>
void set_pointwise_kernel(Op<R(A...)>& o) {
  o.set_kernel(&run_pointwise<op, A...>);
}

template <auto& op, class Struct>
void describe_pointwise() {
  using Arity = traits::Arity<typename std::remove_cvref_t<decltype(op)>::Signature>;
  traits::describe<Struct, Arity::inputs, Arity::params>(op.info);
  set_pointwise_kernel<op>(op);
  if (!op.info.differentiable) op.set_not_differentiable();
}

}  // namespace

void register_pointwise_ops() {
#define VESTA_X_UNARY(name, Struct, params, args) describe_pointwise<ops::name, def::Struct>();
#define VESTA_X_TERNARY(name, Struct, first, second, third) VESTA_X_UNARY(name, Struct, (), ())
  VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_UNARY, VESTA_X_TERNARY)
#undef VESTA_X_UNARY
#undef VESTA_X_TERNARY
}

void OpBase::refuse_layer(Layer) const {
  fail(Cause::not_implemented, name, ": expected an op with a gradient, got an input that requires grad. ", name,
       " has no gradient rule; call it under no_grad() or on x.detach().");
}
void OpBase::refuse_device(DeviceType d) const {
  backend(d);  // says so itself where the device is missing altogether
  fail(Cause::not_implemented, name, ": no ", d == DeviceType::cpu ? "CPU" : d == DeviceType::cuda ? "CUDA" : "such",
       " kernel in this build.");
}

}  // namespace vesta
