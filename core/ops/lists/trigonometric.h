// The op list, trigonometric and hyperbolic functions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_TRIGONOMETRIC(OP)                                                                                    \
  OP(POINTWISE, sin, Sin, (), (), inplace, out)                                                                        \
  OP(POINTWISE, cos, Cos, (), (), inplace, out)                                                                        \
  OP(POINTWISE, tanh, Tanh, (), (), inplace, out)                                                                      \
  OP(POINTWISE, atan2, Atan2, (const Tensor& other), (other), inplace, out, casts(none, widest))                       \
  OP(ALIAS, arctan2, atan2)
