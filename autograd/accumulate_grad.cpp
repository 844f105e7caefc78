#include <vesta/autograd/accumulate_grad.h>

#include <algorithm>
#include <mutex>

#include <vesta/autograd/grad_slot.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>

namespace vesta::autograd {

intrusive_ptr<AccumulateGrad> grad_accumulator(const Tensor& leaf) {
  GradMeta& m = *meta(leaf);
  std::lock_guard lock(m.lock);
  if (m.accumulator && m.accumulator->try_retain()) return intrusive_ptr<AccumulateGrad>::adopt(m.accumulator);
  auto fresh = intrusive_ptr<AccumulateGrad>::first(new AccumulateGrad(leaf));
  m.accumulator = fresh.get();
  return fresh;
}

void replace_memory(const Tensor& t, const Tensor& from, const char* op) {
  const TensorImpl& f = *from.impl();
  const bool fits =
      t.dtype() == from.dtype() && t.device() == from.device() && std::ranges::equal(t.sizes(), f.sizes());
  t.impl()->set_storage(f.storage(), f.sizes(), f.strides(), f.offset(), f.dtype(), op);
  GradMeta* const m = meta(t);
  if (fits || !m) return;
  std::lock_guard lock(m->lock);
  // One that somebody holds and directs (DDP) stays: it says that the leaf has changed.
  if (m->accumulator && !m->accumulator->has_place()) m->accumulator = nullptr;
}

AccumulateGrad::AccumulateGrad(Tensor variable) : Node(kRunsAtOnce), variable_(std::move(variable)) {
  accumulates_ = true;
  borrows_hooks_ = true;
  hooks_ = meta(variable_)->hooks.get();
  set_input_meta(0, 1, variable_);
}

AccumulateGrad::~AccumulateGrad() {
  GradMeta* m = meta(variable_);
  if (!m) return;
  std::lock_guard lock(m->lock);
  if (m->accumulator == this) m->accumulator = nullptr;  // a new one may have taken the place already
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

namespace {
/// Adds a gradient by a recorded op, and returns the leaf's hooks. Recording may run a user's code, and so may the end
/// of the old gradient: neither happens under the lock, on which a thread may wait that has what they need.
NodeHooks* accumulate_recorded(GradMeta& m, const Tensor& g) {
  for (;;) {
    Tensor before;
    {
      std::lock_guard lock(m.lock);
      before = m.grad;
    }
    Tensor sum = before.defined() ? add(before, g) : clone(g);
    std::lock_guard lock(m.lock);
    const bool unchanged = before.defined() ? m.grad.defined() && m.grad.is_same(before) : !m.grad.defined();
    if (!unchanged) continue;  // another thread was faster
    std::swap(m.grad, sum);
    return m.hooks.get();
  }
}
}  // namespace

GradList AccumulateGrad::apply(GradList grads, Needs) {
  if (grads.size() == 0 || !grads[0].defined()) return {};
  Tensor g = std::move(grads[0]);
  GradMeta& m = ensure_meta(variable_);
  Tensor chosen;
  NodeHooks* hooks = nullptr;
  if (place_) [[unlikely]]
    chosen = chosen_target();
  if (GradMode::enabled()) {
    hooks = accumulate_recorded(m, g);
  } else {
    std::lock_guard lock(m.lock);
    hooks = m.hooks.get();
    if (m.grad.defined() && m.grad.is_sparse() && !g.is_sparse()) {
      m.grad = add(g, m.grad);
    } else if (m.grad.defined()) {
      ops::add(m.grad, g, 1, Out{&m.grad, Out::inplace});
    } else if (g.is_sparse()) {
      m.grad = held_only_here(g) ? g.detach() : clone(g);
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
  if (hooks) {
    for (auto& e : hooks->post_accumulate.now()) e.hook->call(variable_);
  }
  return {};
}

}  // namespace vesta::autograd
