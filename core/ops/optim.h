// Fused optimizer steps: what all devices check and prepare.
#pragma once
#include <vesta/core/ops/optim_step.h>
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/optim.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_OPTIM)

/// Checks _fused_sgd_'s lists: lengths, shapes, dtypes, dense memory that may be written.
VESTA_API void check_sgd(TensorList params, TensorList grads, TensorList buffers, double momentum);
/// Checks _fused_adam_'s lists; `steps` are one float32 element each.
VESTA_API void check_adam(TensorList params, TensorList grads, TensorList m, TensorList v, TensorList top,
                          TensorList steps, bool amsgrad);
/// Checks _fused_rmsprop_'s lists; `means` is needed where the step is centered, `buffers` where it has momentum.
VESTA_API void check_rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means,
                             TensorList buffers, TensorList steps, double momentum, bool centered);
/// Gives `t` in the memory order of `like`; a gradient of other strides is copied.
VESTA_API Tensor in_order_of(const Tensor& t, const Tensor& like);

}  // namespace vesta
