// The op list, special functions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SPECIAL(OP)                                                                                          \
  OP(POINTWISE, lgamma, Lgamma, (), (), inplace, out)                                                                  \
  OP(POINTWISE, digamma, Digamma, (), (), inplace, out)                                                                \
  OP(POINTWISE, _polygamma, Polygamma, (double n), (n), hidden)                                                        \
  OP(METHOD_INPLACE, Tensor, polygamma, (int64_t n), (n), composite, tensor_only)                                      \
  OP(FORM, Tensor, polygamma, n, (int64_t n, const Tensor& input), (n, input), polygamma(input, n), out)               \
  OP(METHOD_INPLACE, Tensor, mvlgamma, (int64_t p), (p), composite, out)                                               \
  OP(POINTWISE, erfinv, Erfinv, (), (), inplace, out, casts(none, float32))                                            \
  OP(POINTWISE, ndtr, Ndtr, (), (), in_special, no_method, out)                                                        \
  OP(POINTWISE, ndtri, Ndtri, (), (), in_special, no_method, out)                                                      \
  OP(POINTWISE, log_ndtr, LogNdtr, (), (), in_special, no_method, out)                                                 \
  OP(POINTWISE, i0, I0, (), (), inplace, out)                                                                          \
  OP(POINTWISE, i0e, I0e, (), (), in_special, no_method, out)                                                          \
  OP(POINTWISE, i1, I1, (), (), in_special, no_method, out)                                                            \
  OP(POINTWISE, i1e, I1e, (), (), in_special, no_method, out)
