// The op list, activations. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_ACTIVATION(OP)                                                                                       \
  OP(POINTWISE, sigmoid, Sigmoid, (), (), inplace, out)                                                                \
  OP(POINTWISE, relu, Relu, (), (), inplace)                                                                           \
  OP(POINTWISE, leaky_relu, LeakyRelu, (RealScalar negative_slope = 0.01), (negative_slope), hidden, inplace)          \
  OP(POINTWISE, softplus, Softplus, (RealScalar beta = 1, RealScalar threshold = 20), (beta, threshold), functional,   \
     out, casts(none, float32))                                                                                        \
  OP(POINTWISE, logsigmoid, LogSigmoid, (), (), functional, out)                                                       \
  OP(POINTWISE, erf, Erf, (), (), inplace, out)                                                                        \
  OP(POINTWISE, erfc, Erfc, (), (), inplace, out)                                                                      \
  OP(POINTWISE, _gelu_erf, GeluErf, (), (), hidden)                                                                    \
  OP(POINTWISE, _gelu_tanh, GeluTanh, (), (), hidden)                                                                  \
  OP(METHOD, Tensor, gelu, (Kw<Text> approximate = "none"), (approximate), composite, functional, out)
