// The op list, matrix products. See README.md.
#pragma once

#define VESTA_OPS_MATMUL(OP)                                                                                           \
  OP(METHOD, Tensor, matmul, (const Tensor& other), (other), out, casts(lower, lower))                                 \
  OP(FUNCTION, Tensor, linear, (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}),                     \
     (input, weight, bias), functional, casts(lower, lower))                                                           \
  OP(METHOD, Tensor, mm, (const Tensor& mat2), (mat2), composite, out)                                                 \
  OP(METHOD, Tensor, bmm, (const Tensor& mat2), (mat2), composite, out)                                                \
  OP(METHOD, Tensor, addmm,                                                                                            \
     (const Tensor& mat1, const Tensor& mat2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                          \
     (mat1, mat2, beta, alpha), composite, out, casts(lower, lower))
