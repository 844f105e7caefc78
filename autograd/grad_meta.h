// The autograd state of tensors: their history and their hooks, as the rest of this level reads them and as users
// change them.
#pragma once
#include <vesta/autograd/accumulate_grad.h>
#include <vesta/autograd/hooks.h>
#include <vesta/autograd/views.h>

namespace vesta::autograd {

/// Sets requires_grad of a leaf. Errors: a dtype without gradients; turning it off for a non-leaf; a tensor of
/// inference mode.
VESTA_API void set_requires_grad(const Tensor& t, bool on);
/// Returns whether `t` was made by the user (or requires no grad).
VESTA_API bool is_leaf(const Tensor& t);
/// Keeps the gradient of a non-leaf in grad(t) from now on; does nothing for a leaf.
VESTA_API void retain_grad(const Tensor& t);

}  // namespace vesta::autograd
