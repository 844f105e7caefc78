// The op list of gradients of normalisation together with those of what follows. It is no topic: its ops are not called
// by name. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_NORM_BACKWARD(OP)                                                                                    \
  OP(FUNCTION, TensorTriple, _batch_norm_activation_backward,                                                          \
     (const Tensor& grad, const Tensor& used, int64_t activation, double alpha, double beta, const Tensor& input,      \
      MaybeTensor weight, const Tensor& mean, const Tensor& invstd, bool training),                                    \
     (grad, used, activation, alpha, beta, input, weight, mean, invstd, training), hidden)
