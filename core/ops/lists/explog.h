// The op list, exponentials and logarithms. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_EXPLOG(OP)                                                                                           \
  OP(POINTWISE, exp, Exp, (), (), inplace, out, casts(none, float32))                                                  \
  OP(POINTWISE, log, Log, (), (), inplace, out, casts(none, float32))                                                  \
  OP(POINTWISE, log1p, Log1p, (), (), inplace, out, casts(none, float32))                                              \
  OP(POINTWISE_FUNCTION, _binary_cross_entropy, BinaryCrossEntropy,                                                    \
     (const Tensor& input, const Tensor& target), (input, target), hidden)
