// Enters a pointwise struct into its op: the run-time record, the kernel that all devices share, and whether it has a
// gradient. What remains is a device's business (loops) and autograd's (recording).
#pragma once
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/pointwise_traits.h>

namespace vesta {
namespace traits {
/// Fills the run-time record from the struct.
template <class D, int inputs, int params>
void describe(PointwiseInfo& info) {
  info.inputs = inputs, info.params = params;
  info.accepts = D::accepts;
  info.result = result_of<D>();
  info.integers_to_float = integers_to_float<D>();
  if constexpr (requires { D::bool_to_int64; }) info.bool_to_int64 = D::bool_to_int64;
  info.mask_first = mask_first<D>();
  info.differentiable = is_differentiable_op<D>();
  if constexpr (requires { D::check; }) info.check = D::check;
  auto gradient = [&]<int i>() {
    using G = Gradient<D, inputs, params, i>;
    static_assert(!is_differentiable_op<D>() || G::exists || (mask_first<D>() && i == 0),
                  "a pointwise struct has a gradient for each input, or says differentiable = false");
    info.pass[i] = G::is_pass;
    info.uses[i] = G::mask;
  };
  if constexpr (requires { D::passes_b; }) info.pass_if[1] = D::passes_b;
  if constexpr (is_differentiable_op<D>()) {
    gradient.template operator()<0>();
    if constexpr (inputs > 1) gradient.template operator()<1>();
    if constexpr (inputs > 2) gradient.template operator()<2>();
  }
}
}  // namespace traits

/// Is the kernel of every pointwise op on every device: promotion, broadcasting and memory are the same everywhere, and
/// the device only runs the plan.
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

/// Reads `Struct` into the record of `op` and gives the op its kernel.
template <auto& op, class Struct>
void describe_pointwise() {
  using Arity = traits::Arity<typename std::remove_cvref_t<decltype(op)>::Signature>;
  traits::describe<Struct, Arity::inputs, Arity::params>(op.info);
  set_pointwise_kernel<op>(op);
  if (!op.info.differentiable) op.set_not_differentiable();
}

}  // namespace vesta
