#include <vesta/autograd/grad_meta.h>

#include <mutex>

namespace vesta::autograd {

void set_requires_grad(const Tensor& t, bool on) {
  if (!on && !requires_grad(t)) return;
  if (on) {
    VESTA_CHECK(is_differentiable(t.dtype()), runtime,
                "requires_grad: only Tensors of floating point and complex dtype can require gradients, got ",
                t.dtype(), ".");
    VESTA_CHECK(!t.impl()->inference || layer_state.inference, runtime,
                "requires_grad: Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. "
                "Clone it first.");
    if (requires_grad(t)) return;
    if (t.impl()->base) forget_base(t);  // a leaf of its own now
    ensure_meta(t).requires_grad = true;
    t.impl()->layers |= bit(Layer::autograd);
    return;
  }
  VESTA_CHECK(is_leaf(t), runtime,
              "requires_grad: you can only change requires_grad flags of leaf variables. If you want to use a computed "
              "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  ensure_meta(t).requires_grad = false;
  if (!t.impl()->base) t.impl()->layers &= uint8_t(~bit(Layer::autograd));
}

bool is_leaf(const Tensor& t) { return !requires_grad(t) || !grad_fn(t); }

void retain_grad(const Tensor& t) {
  VESTA_CHECK(requires_grad(t), runtime, "retain_grad: can't retain_grad on Tensor that has requires_grad=False.");
  NodePtr fn = grad_fn(t);
  GradMeta& m = ensure_meta(t);
  if (!fn) return;
  intrusive_ptr<RetainedGrad> place(new RetainedGrad);
  {
    std::lock_guard lock(m.lock);  // another thread may do the same
    if (m.retained) return;
    m.retained = place;
  }
  fn->ensure_hooks().retained.add(m.output_nr, std::move(place));
}

}  // namespace vesta::autograd
