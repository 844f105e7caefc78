// A setting: operations compute what PyTorch computes where Vesta refuses on purpose (docs/as_torch.md). It is read
// only where an operation would raise otherwise, so that it costs nothing.
#pragma once
#include <vesta/core/base/macros.h>
#include <vesta/core/tensor.h>

namespace vesta {

/// Returns whether the process follows PyTorch in these cases; false unless it was set. Any thread may read and set it.
VESTA_API bool follows_torch();
VESTA_API void follow_torch(bool on);

/// Names the node of `t` as PyTorch names the step ("DetBackward0") if the process follows PyTorch; returns `t`.
/// PyTorch records the ops that computed `t` as one step.
/// `t` must be a fresh result of them, never an operand.
VESTA_API Tensor named_step(Tensor t, const char* step);
/// Does the same for two results.
VESTA_API TensorPair named_step(TensorPair pair, const char* step);
/// Does the same for each of a list.
VESTA_API TensorVector named_step(TensorVector list, const char* step);

/// Names the node of `t` as named_step() does, and lets gradients through it, which do not change with the operand,
/// have gradients of zero with respect to the operand, as in PyTorch, instead of none. `step` may be null.
VESTA_API Tensor flat_step(Tensor t, const char* step);
VESTA_API TensorPair flat_step(TensorPair pair, const char* step);

}  // namespace vesta
