// The texts of help() for gradients of normalisation together with those of what follows.
#pragma once

namespace vesta::doc {

inline constexpr char _batch_norm_activation_backward[] =
    "_batch_norm_activation_backward(grad, used, activation, alpha, beta, input, weight, mean, invstd, training): "
    "gradients of input, weight [C] and bias [C] of a batch normalisation whose result goes through an activation. "
    "grad is the gradient of the activation's result, used what its gradient is computed from, alpha and beta are its "
    "parameters.";

}  // namespace vesta::doc
