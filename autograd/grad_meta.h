// GradMeta: the autograd state of a tensor, and the functions that the rest of this level uses to query it.
#pragma once
#include <memory>

#include <vesta/autograd/hooks.h>
#include <vesta/autograd/node.h>

namespace vesta::autograd {

/// A lock that is held for a few instructions or, rarely, for one addition. It spins, then yields, and fits in a byte.
class VESTA_API TinyLock {
 public:
  void lock() noexcept {
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  void wait() noexcept;
  std::atomic<bool> held_{false};
};

/// The autograd state of one tensor; TensorImpl owns it. A tensor without one requires no grad.
struct VESTA_API GradMeta final : AutogradSlot, pool::Pooled {
  Tensor grad;                            // of leaves, and of tensors that retain it (then in `retained`)
  NodePtr grad_fn;                        // null for leaves
  AccumulateGrad* accumulator = nullptr;  // weak; of leaves
  std::unique_ptr<NodeHooks> hooks;       // of leaves: their accumulator borrows them
  intrusive_ptr<RetainedGrad> retained;   // of non-leaves that retain their grad
  uint32_t output_nr = 0;                 // which output of grad_fn this is
  uint32_t generation = 0;  // of a base: how often its history was replaced; of a view: which one it knows
  bool requires_grad = false;
  TinyLock lock;  // guards `accumulator`, and `grad` while it is accumulated

  ~GradMeta() override;
};

/// Returns the autograd state of a tensor, null where there is none yet.
inline GradMeta* meta(const Tensor& t) { return static_cast<GradMeta*>(t.impl()->autograd); }
/// Returns the autograd state of a tensor, which is created on first use.
VESTA_API GradMeta& ensure_meta(const Tensor& t);

/// Returns whether gradients are wanted for `t`: `t` is a leaf marked so, or the result of a recorded op. False for an
/// undefined tensor.
VESTA_API bool view_requires_grad(const Tensor& t);
inline bool requires_grad(const Tensor& t) {
  if (!t.defined() || !(t.impl()->layers & bit(Layer::autograd))) return false;
  if (t.impl()->base) return view_requires_grad(t);
  return t.impl()->autograd && meta(t)->requires_grad;
}
/// Sets requires_grad of a leaf. Errors: a dtype without gradients; turning it off for a non-leaf; a tensor of
/// inference mode.
VESTA_API void set_requires_grad(const Tensor& t, bool on);
/// Returns whether `t` was made by the user (or requires no grad).
VESTA_API bool is_leaf(const Tensor& t);
/// Returns the node that made `t` (brought up to date where `t` is a view whose base was overwritten), null for leaves.
VESTA_API NodePtr grad_fn(const Tensor& t);
/// Returns which output of grad_fn(t) this is.
VESTA_API uint32_t output_nr(const Tensor& t);
/// Returns where the gradient of `t` goes: its grad_fn, or its accumulator; no node if it requires no grad.
VESTA_API Edge gradient_edge(const Tensor& t);
/// Returns the accumulator of a leaf, the same one as long as anybody holds it.
VESTA_API intrusive_ptr<AccumulateGrad> grad_accumulator(const Tensor& leaf);

/// Returns the accumulated (or retained) gradient, undefined where there is none.
VESTA_API Tensor grad(const Tensor& t);
/// Replaces the gradient; checks shape, dtype and device; an undefined tensor clears it.
VESTA_API void set_grad(const Tensor& t, const Tensor& grad);
/// Keeps the gradient of a non-leaf in grad(t) from now on; does nothing for a leaf.
VESTA_API void retain_grad(const Tensor& t);
VESTA_API bool retains_grad(const Tensor& t);

/// Makes `result`, fresh from an op, output `output_nr` of `node`. The caller sets the node's metadata.
VESTA_API void set_history(const Tensor& result, NodePtr node, uint32_t output_nr = 0);
/// Returns whether `t`, its memory and (of a view) its base have no owner but this handle: it may be overwritten or
/// kept.
VESTA_API bool held_only_here(const Tensor& t);
/// Drops the history of `t`, which becomes a leaf that requires no grad (`detach_`). Error for views.
VESTA_API void detach_(const Tensor& t);

// In-place ops and views: Note [Views and in-place] in views.cpp.
/// Raises if an in-place op on `t` cannot be recorded: leaves that require grad and their views, views made without
/// recording. `records`: some operand requires grad.
VESTA_API void check_inplace(const Tensor& t, bool records, const char* op);
/// Makes `node` (whose input 0 is the old value of `t`) the history of `t`; if `t` is a view, of its base.
VESTA_API void rebase_history(const Tensor& t, NodePtr node);
/// Makes `view`, fresh from a recorded view op, output `output_nr` of `node`; it stays tied to its base.
VESTA_API void set_view_history(const Tensor& view, NodePtr node, uint32_t output_nr = 0);
/// Makes `t` independent: no longer a view, without flags (for results of ops whose kernel ends in a reshape).
VESTA_API void forget_base(const Tensor& t);
/// Returns the tensor that `t` is a view of, undefined if it is not a view.
VESTA_API Tensor view_base(const Tensor& t);

}  // namespace vesta::autograd
