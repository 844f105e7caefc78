// The op list, matrix products. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_MATMUL(OP)                                                                                           \
  OP(METHOD, Tensor, matmul, (const Tensor& other), (other), exact_out, casts(lower, lower), accepts(kNumbers))        \
  OP(FUNCTION, Tensor, linear, (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}),                     \
     (input, weight, bias), functional, exact_out, casts(lower, lower), accepts(kNumbers))                             \
  OP(FUNCTION, Tensor, _wide_matmul, (const Tensor& input, const Tensor& other), (input, other), composite, hidden,    \
     accepts(set_of(DType::float16) | set_of(DType::bfloat16)))                                                        \
  OP(FUNCTION, TensorPair, _linear_backward_weight, (const Tensor& grad, const Tensor& input), (grad, input),          \
     composite, hidden, accepts(kNumbers))                                                                             \
  OP(FUNCTION, Tensor, _linear_backward_activation,                                                                    \
     (const Tensor& grad, const Tensor& weight, const Tensor& used, bool use_gelu, MaybeTensor kept = {}),             \
     (grad, weight, used, use_gelu, kept), composite, hidden, accepts(kReals))                                         \
  OP(FUNCTION, TensorPair, _fused_linear,                                                                              \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias, bool use_gelu, bool keep),                          \
     (input, weight, bias, use_gelu, keep), composite, hidden, accepts(kReals))                                        \
  OP(FUNCTION, Tensor, _linear_activation,                                                                             \
     (const Tensor& input, const Tensor& weight, MaybeTensor bias = {}, bool use_gelu = false),                        \
     (input, weight, bias, use_gelu), composite, hidden, casts(lower, lower), accepts(kReals))                         \
  OP(METHOD, Tensor, _addmm_activation,                                                                                \
     (const Tensor& mat1, const Tensor& mat2, Kw<RealScalar> beta = 1, RealScalar alpha = 1, bool use_gelu = false),   \
     (mat1, mat2, beta, alpha, use_gelu), composite, out, casts(lower, lower), accepts(kReals))                        \
  OP(METHOD, Tensor, mm, (const Tensor& mat2), (mat2), composite, exact_out, accepts(kNumbers))                        \
  OP(METHOD, Tensor, bmm, (const Tensor& mat2), (mat2), composite, exact_out, accepts(kNumbers))                       \
  OP(PRODUCT_FORMS, addmm, mat1, mat2, exact_out)                                                                      \
  OP(METHOD, Tensor, addmm, (const Tensor& mat1, const Tensor& mat2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),   \
     (mat1, mat2, beta, alpha), composite, exact_out, casts(lower, lower), accepts(kNumbers))                          \
  OP(PRODUCT_FACTORS, addmm, mat1, mat2, exact_out)                                                                    \
  OP(METHOD, Tensor, addmm_, (const Tensor& mat1, const Tensor& mat2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),  \
     (mat1, mat2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                             \
  OP(PRODUCT_FORMS_INPLACE, addmm, mat1, mat2)                                                                         \
  OP(PRODUCT_FORMS, baddbmm, batch1, batch2, exact_out)                                                                \
  OP(METHOD, Tensor, baddbmm,                                                                                          \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, exact_out, casts(lower, lower), accepts(kNumbers))                      \
  OP(PRODUCT_FACTORS, baddbmm, batch1, batch2, exact_out)                                                              \
  OP(METHOD, Tensor, baddbmm_,                                                                                         \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                         \
  OP(PRODUCT_FORMS_INPLACE, baddbmm, batch1, batch2)                                                                   \
  OP(PRODUCT_FORMS, addbmm, batch1, batch2, exact_out)                                                                 \
  OP(METHOD, Tensor, addbmm,                                                                                           \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, exact_out, casts(lower, lower), accepts(kNumbers))                      \
  OP(PRODUCT_FACTORS, addbmm, batch1, batch2, exact_out)                                                               \
  OP(METHOD, Tensor, addbmm_,                                                                                          \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                         \
  OP(PRODUCT_FORMS_INPLACE, addbmm, batch1, batch2)                                                                    \
  OP(PRODUCT_FORMS, addr, vec1, vec2, out)                                                                             \
  OP(METHOD_OUT, addr, (const Tensor& vec1, const Tensor& vec2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),        \
     (vec1, vec2, beta, alpha), casts(none, widest))                                                                   \
  OP(PRODUCT_FACTORS, addr, vec1, vec2, out)                                                                           \
  OP(METHOD, Tensor, addr_, (const Tensor& vec1, const Tensor& vec2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),   \
     (vec1, vec2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                             \
  OP(PRODUCT_FORMS_INPLACE, addr, vec1, vec2)                                                                          \
  OP(METHOD, Tensor, mv, (const Tensor& vec), (vec), composite, exact_out, casts(none, lower), accepts(kNumbers))      \
  OP(METHOD, Tensor, dot, (const Tensor& tensor), (tensor), composite, exact_out, casts(none, widest),                 \
     accepts(kNumbers))                                                                                                \
  OP(METHOD, Tensor, vdot, (const Tensor& other), (other), composite, exact_out, casts(none, widest),                  \
     accepts(kNumbers))                                                                                                \
  OP(METHOD_OUT, inner, (const Tensor& other), (other))                                                                \
  OP(METHOD_OUT, outer, (const Tensor& vec2), (vec2))                                                                  \
  OP(PRODUCT_FORMS, addmv, mat, vec, exact_out)                                                                        \
  OP(METHOD, Tensor, addmv, (const Tensor& mat, const Tensor& vec, Kw<RealScalar> beta = 1, RealScalar alpha = 1),     \
     (mat, vec, beta, alpha), composite, exact_out, casts(none, lower), accepts(kNumbers))                             \
  OP(PRODUCT_FACTORS, addmv, mat, vec, exact_out)                                                                      \
  OP(METHOD_OUT, kron, (const Tensor& other), (other))                                                                 \
  OP(ALIAS, ger, outer)
