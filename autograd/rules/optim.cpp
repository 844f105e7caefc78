// Fused optimizer steps, and the unscaling before them, are no part of the tape: they write parameters and gradients in
// place, which only no_grad allows.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/ops.h>

namespace vesta::autograd::rules {
namespace {

void check_list(TensorList params, const char* op) {
  for (const Tensor& p : params) check_inplace(p, requires_grad(p), op);
}

template <auto& op, class... A>
void step(TensorList params, A... a) {
  check_list(params, op.name);
  Below autograd(Layer::autograd);
  op(params, static_cast<A>(a)...);
}

template <auto& op, class... A>
void refuse_recording(Op<void(TensorList, A...)>& o) {
  o.set_layer(Layer::autograd, &step<op, A...>);
}

}  // namespace

void register_optim() {
  refuse_recording<ops::_fused_sgd_>(ops::_fused_sgd_);
  refuse_recording<ops::_fused_adam_>(ops::_fused_adam_);
  refuse_recording<ops::_fused_rmsprop_>(ops::_fused_rmsprop_);
  refuse_recording<ops::_amp_unscale_>(ops::_amp_unscale_);
}

}  // namespace vesta::autograd::rules
