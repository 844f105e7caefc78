#include <vesta/autograd/grad_meta.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include <vesta/core/ops/ops.h>

namespace vesta::autograd {

void TinyLock::wait() noexcept {
  for (int i = 0;; ++i) {
    while (held_.load(std::memory_order_relaxed)) {
      if (++i > 64) std::this_thread::yield();
    }
    if (!held_.exchange(true, std::memory_order_acquire)) return;
  }
}

GradMeta::~GradMeta() = default;

GradMeta& ensure_meta(const Tensor& t) {
  if (!t.impl()->autograd) t.impl()->autograd = new GradMeta;
  return *meta(t);
}

// ---- leaves ---------------------------------------------------------------------------------------------------------

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

intrusive_ptr<AccumulateGrad> grad_accumulator(const Tensor& leaf) {
  GradMeta& m = *meta(leaf);
  std::lock_guard lock(m.lock);
  if (m.accumulator && m.accumulator->try_retain()) return intrusive_ptr<AccumulateGrad>::adopt(m.accumulator);
  intrusive_ptr<AccumulateGrad> fresh(new AccumulateGrad(leaf));
  m.accumulator = fresh.get();
  return fresh;
}

Edge gradient_edge(const Tensor& t) {
  if (!requires_grad(t)) return {};
  if (!t.impl()->base) {
    GradMeta& m = *meta(t);
    if (m.grad_fn) return {m.grad_fn, m.output_nr};
    return {grad_accumulator(t), 0};
  }
  if (NodePtr fn = grad_fn(t)) return {std::move(fn), output_nr(t)};
  return {grad_accumulator(t), 0};
}

uint32_t output_nr(const Tensor& t) { return t.impl()->autograd ? meta(t)->output_nr : 0; }

// ---- gradients ------------------------------------------------------------------------------------------------------

Tensor grad(const Tensor& t) {
  if (!t.impl()->autograd) return {};
  GradMeta& m = *meta(t);
  std::lock_guard lock(m.lock);
  return m.retained ? m.retained->grad : m.grad;
}

void set_grad(const Tensor& t, const Tensor& g) {
  if (g.defined()) {
    VESTA_CHECK(!g.is_same(t), runtime, "grad: can't assign Variable as its own grad.");
    VESTA_CHECK(g.dtype() == t.dtype(), runtime, "grad: assigned grad has data of a different type: expected ",
                t.dtype(), ", got ", g.dtype(), ".");
    VESTA_CHECK(g.device() == t.device(), runtime,
                "grad: assigned grad has data located on a different device: expected ", t.device(), ", got ",
                g.device(), ".");
    VESTA_CHECK(std::ranges::equal(g.sizes(), t.sizes()), runtime,
                "grad: assigned grad has data of a different size: expected ", t.sizes(), ", got ", g.sizes(), ".");
  } else if (!t.impl()->autograd) {
    return;
  }
  GradMeta& m = ensure_meta(t);
  Tensor old;  // dies outside the lock
  std::lock_guard lock(m.lock);
  old = std::exchange(m.retained ? m.retained->grad : m.grad, g);
}

bool retains_grad(const Tensor& t) { return t.impl()->autograd && meta(t)->retained; }

void retain_grad(const Tensor& t) {
  VESTA_CHECK(requires_grad(t), runtime, "retain_grad: can't retain_grad on Tensor that has requires_grad=False.");
  NodePtr fn = grad_fn(t);
  GradMeta& m = ensure_meta(t);
  if (!fn || m.retained) return;
  m.retained = intrusive_ptr<RetainedGrad>(new RetainedGrad);
  fn->ensure_hooks().retained.emplace_back(m.output_nr, m.retained);
}

bool held_only_here(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  if (impl.use_count() != 1) return false;
  if (!impl.base) return impl.storage()->use_count() == 1;
  return impl.base->use_count() == 1 && impl.storage()->use_count() == 2;
}

namespace {
bool laid_out_alike(const Tensor& a, const Tensor& b) {
  return a.impl()->dense() && std::ranges::equal(a.strides(), b.strides());
}

/// Returns a copy of `g` in its own memory, laid out like the leaf where the leaf is dense.
Tensor copy_like(const Tensor& g, const Tensor& leaf) {
  Tensor r = leaf.impl()->dense() ? empty_tensor_strided(leaf.sizes(), leaf.strides(), leaf.dtype(), leaf.device())
                                  : empty_tensor(leaf.sizes(), leaf.dtype(), leaf.device());
  copy_into(r, g, "AccumulateGrad");
  return r;
}
}  // namespace

void AccumulateGrad::set_target(Tensor target) {
  if (target.defined()) {
    VESTA_CHECK(input_meta(0).fits(target), value, "set_target: expected a tensor like the leaf ", variable_.sizes(),
                " ", variable_.dtype(), ", got ", target.sizes(), " ", target.dtype(), ".");
  }
  std::lock_guard lock(meta(variable_)->lock);
  target_ = std::move(target);
}

/// Asks where the first gradient goes. This runs outside the leaf's lock, because the callee may look at the leaf.
Tensor AccumulateGrad::chosen_target() {
  if (!place_ || GradMode::enabled() || grad(variable_).defined()) return target_;
  Tensor place = place_->place();
  VESTA_ASSERT(!place.defined() || input_meta(0).fits(place));
  return place.defined() ? place : target_;
}

GradList AccumulateGrad::apply(GradList grads, Needs) {
  if (grads.size() == 0 || !grads[0].defined()) return {};
  Tensor g = std::move(grads[0]);
  GradMeta& m = ensure_meta(variable_);
  Tensor chosen;
  if (place_) [[unlikely]]
    chosen = chosen_target();
  {
    std::lock_guard lock(m.lock);
    if (m.grad.defined()) {
      if (GradMode::enabled()) m.grad = m.grad + g;
      else ops::add(m.grad, g, 1, Out{&m.grad, Out::inplace});
    } else if (GradMode::enabled()) {
      m.grad = g.clone();
    } else if (const Tensor& target = chosen.defined() ? chosen : target_; target.defined()) {
      copy_into(target, g, "AccumulateGrad");
      m.grad = target;
    } else if (held_only_here(g) && laid_out_alike(g, variable_)) {
      if (g.impl()->base) forget_base(g);
      if (g.impl()->autograd) g = g.detach();
      m.grad = std::move(g);
    } else {
      m.grad = copy_like(g, variable_);
    }
  }
  if (m.hooks) {
    auto entries = m.hooks->post_accumulate.entries;  // a hook may remove itself
    for (auto& e : entries) e.hook->call(variable_);
  }
  return {};
}

}  // namespace vesta::autograd
