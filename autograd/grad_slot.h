// GradMeta: the autograd state of a tensor, in the slot that TensorImpl has for it. The functions here do not bring it
// up to date: it may miss that the base of a view was overwritten (see views.h).
#pragma once
#include <memory>

#include <vesta/autograd/node.h>
#include <vesta/autograd/node_hooks.h>

namespace vesta::autograd {

/// The autograd state of one tensor; TensorImpl owns it. A tensor without one requires no grad.
struct VESTA_API GradMeta final : AutogradSlot, pool::Pooled {
  Tensor grad;                            // of leaves, and of tensors that retain it (then in `retained`)
  NodePtr grad_fn;                        // null for leaves
  AccumulateGrad* accumulator = nullptr;  // weak; of leaves
  std::unique_ptr<NodeHooks> hooks;       // of leaves: their accumulator borrows them
  intrusive_ptr<RetainedGrad> retained;   // of non-leaves that retain their grad
  uint32_t output_nr = 0;                 // which output of grad_fn this is
  uint32_t generation = 0;  // of a base: how often its history was replaced; of a view: which one it knows
  Relaxed<bool> requires_grad = false;
  TinyLock lock;  // guards `accumulator`, `hooks`, and `grad` while it is accumulated

  ~GradMeta() override;
};

/// Returns the autograd state of a tensor, null where there is none yet.
inline GradMeta* meta(const Tensor& t) { return static_cast<GradMeta*>(t.impl()->autograd); }
/// Returns the autograd state of a tensor, which is created on first use.
VESTA_API GradMeta& ensure_meta(const Tensor& t);
/// Returns which output of grad_fn(t) this is.
VESTA_API uint32_t output_nr(const Tensor& t);

/// Returns the accumulated (or retained) gradient, undefined where there is none.
VESTA_API Tensor grad(const Tensor& t);
/// Replaces the gradient; checks shape, dtype and device; an undefined tensor clears it.
VESTA_API void set_grad(const Tensor& t, const Tensor& grad);
/// Returns whether retain_grad() was called for `t`.
VESTA_API bool retains_grad(const Tensor& t);

/// Makes `t` independent: no longer a view, without flags. For results of ops whose kernel ends in a reshape.
VESTA_API void forget_base(const Tensor& t);
/// Returns whether `t`, its memory and (of a view) its base have no owner but this handle: it may be overwritten or
/// kept.
VESTA_API bool held_only_here(const Tensor& t);

}  // namespace vesta::autograd
