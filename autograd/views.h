// The history of tensors: the nodes that made them, including views and tensors that were written in place. See Note
// [Views and in-place] in views.cpp.
#pragma once
#include <vesta/autograd/grad_slot.h>

namespace vesta::autograd {

/// Returns whether `t` requires a gradient: `t` is a leaf marked so, or the result of a recorded op. False for an
/// undefined tensor.
VESTA_API bool view_requires_grad(const Tensor& t);
inline bool requires_grad(const Tensor& t) {
  if (!t.defined() || !(t.impl()->layers & bit(Layer::autograd))) return false;
  if (t.impl()->base) return view_requires_grad(t);
  return t.impl()->autograd && meta(t)->requires_grad;
}
/// Returns the node that made `t` (brought up to date where `t` is a view whose base was overwritten), null for leaves.
VESTA_API NodePtr grad_fn(const Tensor& t);
/// Returns where the gradient of `t` goes: its grad_fn, or its accumulator; no node if it requires no grad.
VESTA_API Edge gradient_edge(const Tensor& t);

/// Makes `result`, fresh from an op, output `output_nr` of `node`. The caller sets the node's metadata.
VESTA_API void set_history(const Tensor& result, NodePtr node, uint32_t output_nr = 0);
/// Drops the history of `t`, which becomes a leaf that requires no grad (`detach_`). Error for views.
VESTA_API void detach_(const Tensor& t);

/// Raises if an in-place op on `t` cannot be recorded: leaves that require grad and their views, views made without
/// recording. `records`: some operand requires grad.
VESTA_API void check_inplace(const Tensor& t, bool records, const char* op);
/// Makes `node` (whose input 0 is the old value of `t`) the history of `t`; if `t` is a view, of its base.
VESTA_API void rebase_history(const Tensor& t, NodePtr node);
/// Makes `view`, fresh from a recorded view op, output `output_nr` of `node`; it stays tied to its base.
VESTA_API void set_view_history(const Tensor& view, NodePtr node, uint32_t output_nr = 0);
/// Gives `t` the geometry and the history of `view`, a view of it, and counts a write by `op` (unsqueeze_ and the
/// like).
VESTA_API void become_view(const Tensor& t, const Tensor& view, const char* op);
/// Returns the tensor that `t` is a view of, undefined if it is not a view.
VESTA_API Tensor view_base(const Tensor& t);

}  // namespace vesta::autograd
