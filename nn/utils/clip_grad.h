// Clipping of gradients before an optimizer's step, under PyTorch's names.
#pragma once
#include <limits>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::nn::utils {

/// Returns the norm of the gradients of all parameters as if they were one vector, a 0-d tensor; `norm_type` may be
/// infinity.
VESTA_API Tensor get_grad_norm(const std::vector<Tensor>& parameters, double norm_type = 2);
/// Scales all gradients in place so that their norm is at most max_norm; returns the norm before. RuntimeError: it is
/// NaN or infinite and `error_if_nonfinite`.
VESTA_API Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                                 bool error_if_nonfinite = false);
/// Clamps all elements of gradients in place to [-clip_value, clip_value].
VESTA_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace vesta::nn::utils
