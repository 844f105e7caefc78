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
  OP(PYTHON_FORM, Tensor, addmm, alpha_beta,                                                                           \
     (RealScalar beta, const Tensor& input, RealScalar alpha, const Tensor& mat1, const Tensor& mat2),                 \
     (beta, input, alpha, mat1, mat2), addmm(input, mat1, mat2, beta, alpha), deprecated, exact_out, accepts(kNumbers))\
  OP(PYTHON_FORM, Tensor, addmm, beta,                                                                                 \
     (RealScalar beta, const Tensor& input, const Tensor& mat1, const Tensor& mat2), (beta, input, mat1, mat2),        \
     addmm(input, mat1, mat2, beta), deprecated, exact_out, accepts(kNumbers))                                         \
  OP(PYTHON_FORM, Tensor, addmm, method_alpha_beta,                                                                    \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& mat1, const Tensor& mat2),                 \
     (input, beta, alpha, mat1, mat2), addmm(input, mat1, mat2, beta, alpha), tensor_only, deprecated,                 \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addmm, method_beta,                                                                          \
     (const Tensor& input, RealScalar beta, const Tensor& mat1, const Tensor& mat2), (input, beta, mat1, mat2),        \
     addmm(input, mat1, mat2, beta), tensor_only, deprecated, accepts(kNumbers))                                       \
  OP(METHOD, Tensor, addmm, (const Tensor& mat1, const Tensor& mat2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),   \
     (mat1, mat2, beta, alpha), composite, exact_out, casts(lower, lower), accepts(kNumbers))                          \
  OP(PYTHON_FORM, Tensor, addmm, complex_factor, (const Tensor& input, const Tensor& mat1, const Tensor& mat2,         \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, mat1, mat2, beta, alpha),                                         \
     with_factors(addmm, input, mat1, mat2, beta, alpha), method, exact_out, accepts(kNumbers))                        \
  OP(METHOD, Tensor, addmm_, (const Tensor& mat1, const Tensor& mat2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),  \
     (mat1, mat2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                             \
  OP(PYTHON_FORM, Tensor, addmm_, method_alpha_beta,                                                                   \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& mat1, const Tensor& mat2),                 \
     (input, beta, alpha, mat1, mat2), addmm_(input, mat1, mat2, beta, alpha), tensor_only, deprecated,                \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addmm_, method_beta,                                                                         \
     (const Tensor& input, RealScalar beta, const Tensor& mat1, const Tensor& mat2), (input, beta, mat1, mat2),        \
     addmm_(input, mat1, mat2, beta), tensor_only, deprecated, accepts(kNumbers))                                      \
  OP(PYTHON_FORM, Tensor, addmm_, complex_factor, (const Tensor& input, const Tensor& mat1, const Tensor& mat2,        \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, mat1, mat2, beta, alpha),                                         \
     copy_(input, with_factors(addmm, input, mat1, mat2, beta, alpha)), tensor_only, accepts(kNumbers))                \
  OP(PYTHON_FORM, Tensor, baddbmm, alpha_beta,                                                                         \
     (RealScalar beta, const Tensor& input, RealScalar alpha, const Tensor& batch1, const Tensor& batch2),             \
     (beta, input, alpha, batch1, batch2), baddbmm(input, batch1, batch2, beta, alpha), deprecated, exact_out,         \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, baddbmm, beta,                                                                               \
     (RealScalar beta, const Tensor& input, const Tensor& batch1, const Tensor& batch2),                               \
     (beta, input, batch1, batch2), baddbmm(input, batch1, batch2, beta), deprecated, exact_out, accepts(kNumbers))    \
  OP(PYTHON_FORM, Tensor, baddbmm, method_alpha_beta,                                                                  \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& batch1, const Tensor& batch2),             \
     (input, beta, alpha, batch1, batch2), baddbmm(input, batch1, batch2, beta, alpha), tensor_only, deprecated,       \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, baddbmm, method_beta,                                                                        \
     (const Tensor& input, RealScalar beta, const Tensor& batch1, const Tensor& batch2),                               \
     (input, beta, batch1, batch2), baddbmm(input, batch1, batch2, beta), tensor_only, deprecated, accepts(kNumbers))  \
  OP(METHOD, Tensor, baddbmm,                                                                                          \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, exact_out, casts(lower, lower), accepts(kNumbers))                      \
  OP(PYTHON_FORM, Tensor, baddbmm, complex_factor, (const Tensor& input, const Tensor& batch1, const Tensor& batch2,   \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, batch1, batch2, beta, alpha),                                     \
     with_factors(baddbmm, input, batch1, batch2, beta, alpha), method, exact_out, accepts(kNumbers))                  \
  OP(METHOD, Tensor, baddbmm_,                                                                                         \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                         \
  OP(PYTHON_FORM, Tensor, baddbmm_, method_alpha_beta,                                                                 \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& batch1, const Tensor& batch2),             \
     (input, beta, alpha, batch1, batch2), baddbmm_(input, batch1, batch2, beta, alpha), tensor_only, deprecated,      \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, baddbmm_, method_beta,                                                                       \
     (const Tensor& input, RealScalar beta, const Tensor& batch1, const Tensor& batch2),                               \
     (input, beta, batch1, batch2), baddbmm_(input, batch1, batch2, beta), tensor_only, deprecated,                    \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, baddbmm_, complex_factor, (const Tensor& input, const Tensor& batch1, const Tensor& batch2,  \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, batch1, batch2, beta, alpha),                                     \
     copy_(input, with_factors(baddbmm, input, batch1, batch2, beta, alpha)), tensor_only, accepts(kNumbers))          \
  OP(PYTHON_FORM, Tensor, addbmm, alpha_beta,                                                                          \
     (RealScalar beta, const Tensor& input, RealScalar alpha, const Tensor& batch1, const Tensor& batch2),             \
     (beta, input, alpha, batch1, batch2), addbmm(input, batch1, batch2, beta, alpha), deprecated, exact_out,          \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addbmm, beta,                                                                                \
     (RealScalar beta, const Tensor& input, const Tensor& batch1, const Tensor& batch2),                               \
     (beta, input, batch1, batch2), addbmm(input, batch1, batch2, beta), deprecated, exact_out, accepts(kNumbers))     \
  OP(PYTHON_FORM, Tensor, addbmm, method_alpha_beta,                                                                   \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& batch1, const Tensor& batch2),             \
     (input, beta, alpha, batch1, batch2), addbmm(input, batch1, batch2, beta, alpha), tensor_only, deprecated,        \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addbmm, method_beta,                                                                         \
     (const Tensor& input, RealScalar beta, const Tensor& batch1, const Tensor& batch2),                               \
     (input, beta, batch1, batch2), addbmm(input, batch1, batch2, beta), tensor_only, deprecated, accepts(kNumbers))   \
  OP(METHOD, Tensor, addbmm,                                                                                           \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, exact_out, casts(lower, lower), accepts(kNumbers))                      \
  OP(PYTHON_FORM, Tensor, addbmm, complex_factor, (const Tensor& input, const Tensor& batch1, const Tensor& batch2,    \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, batch1, batch2, beta, alpha),                                     \
     with_factors(addbmm, input, batch1, batch2, beta, alpha), method, exact_out, accepts(kNumbers))                   \
  OP(METHOD, Tensor, addbmm_,                                                                                          \
     (const Tensor& batch1, const Tensor& batch2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),                      \
     (batch1, batch2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                         \
  OP(PYTHON_FORM, Tensor, addbmm_, method_alpha_beta,                                                                  \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& batch1, const Tensor& batch2),             \
     (input, beta, alpha, batch1, batch2), addbmm_(input, batch1, batch2, beta, alpha), tensor_only, deprecated,       \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addbmm_, method_beta,                                                                        \
     (const Tensor& input, RealScalar beta, const Tensor& batch1, const Tensor& batch2),                               \
     (input, beta, batch1, batch2), addbmm_(input, batch1, batch2, beta), tensor_only, deprecated, accepts(kNumbers))  \
  OP(PYTHON_FORM, Tensor, addbmm_, complex_factor, (const Tensor& input, const Tensor& batch1, const Tensor& batch2,   \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, batch1, batch2, beta, alpha),                                     \
     copy_(input, with_factors(addbmm, input, batch1, batch2, beta, alpha)), tensor_only, accepts(kNumbers))           \
  OP(PYTHON_FORM, Tensor, addr, alpha_beta,                                                                            \
     (RealScalar beta, const Tensor& input, RealScalar alpha, const Tensor& vec1, const Tensor& vec2),                 \
     (beta, input, alpha, vec1, vec2), addr(input, vec1, vec2, beta, alpha), deprecated, out)                          \
  OP(PYTHON_FORM, Tensor, addr, beta,                                                                                  \
     (RealScalar beta, const Tensor& input, const Tensor& vec1, const Tensor& vec2), (beta, input, vec1, vec2),        \
     addr(input, vec1, vec2, beta), deprecated, out)                                                                   \
  OP(PYTHON_FORM, Tensor, addr, method_alpha_beta,                                                                     \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& vec1, const Tensor& vec2),                 \
     (input, beta, alpha, vec1, vec2), addr(input, vec1, vec2, beta, alpha), tensor_only, deprecated)                  \
  OP(PYTHON_FORM, Tensor, addr, method_beta,                                                                           \
     (const Tensor& input, RealScalar beta, const Tensor& vec1, const Tensor& vec2), (input, beta, vec1, vec2),        \
     addr(input, vec1, vec2, beta), tensor_only, deprecated)                                                           \
  OP(METHOD_OUT, addr, (const Tensor& vec1, const Tensor& vec2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),        \
     (vec1, vec2, beta, alpha), casts(none, widest))                                                                   \
  OP(PYTHON_FORM, Tensor, addr, complex_factor, (const Tensor& input, const Tensor& vec1, const Tensor& vec2,          \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, vec1, vec2, beta, alpha),                                         \
     with_factors(addr, input, vec1, vec2, beta, alpha), method, out, accepts(kNumbers))                               \
  OP(METHOD, Tensor, addr_, (const Tensor& vec1, const Tensor& vec2, Kw<RealScalar> beta = 1, RealScalar alpha = 1),   \
     (vec1, vec2, beta, alpha), composite, tensor_only, accepts(kNumbers))                                             \
  OP(PYTHON_FORM, Tensor, addr_, method_alpha_beta,                                                                    \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& vec1, const Tensor& vec2),                 \
     (input, beta, alpha, vec1, vec2), addr_(input, vec1, vec2, beta, alpha), tensor_only, deprecated,                 \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addr_, method_beta,                                                                          \
     (const Tensor& input, RealScalar beta, const Tensor& vec1, const Tensor& vec2), (input, beta, vec1, vec2),        \
     addr_(input, vec1, vec2, beta), tensor_only, deprecated, accepts(kNumbers))                                       \
  OP(PYTHON_FORM, Tensor, addr_, complex_factor, (const Tensor& input, const Tensor& vec1, const Tensor& vec2,         \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, vec1, vec2, beta, alpha),                                         \
     copy_(input, with_factors(addr, input, vec1, vec2, beta, alpha)), tensor_only, accepts(kNumbers))                 \
  OP(METHOD, Tensor, mv, (const Tensor& vec), (vec), composite, exact_out, casts(none, lower), accepts(kNumbers))      \
  OP(METHOD, Tensor, dot, (const Tensor& tensor), (tensor), composite, exact_out, casts(none, widest),                 \
     accepts(kNumbers))                                                                                                \
  OP(METHOD, Tensor, vdot, (const Tensor& other), (other), composite, exact_out, casts(none, widest),                  \
     accepts(kNumbers))                                                                                                \
  OP(METHOD_OUT, inner, (const Tensor& other), (other))                                                                \
  OP(METHOD_OUT, outer, (const Tensor& vec2), (vec2))                                                                  \
  OP(PYTHON_FORM, Tensor, addmv, alpha_beta,                                                                           \
     (RealScalar beta, const Tensor& input, RealScalar alpha, const Tensor& mat, const Tensor& vec),                   \
     (beta, input, alpha, mat, vec), addmv(input, mat, vec, beta, alpha), deprecated, exact_out, accepts(kNumbers))    \
  OP(PYTHON_FORM, Tensor, addmv, beta, (RealScalar beta, const Tensor& input, const Tensor& mat, const Tensor& vec),   \
     (beta, input, mat, vec), addmv(input, mat, vec, beta), deprecated, exact_out, accepts(kNumbers))                  \
  OP(PYTHON_FORM, Tensor, addmv, method_alpha_beta,                                                                    \
     (const Tensor& input, RealScalar beta, RealScalar alpha, const Tensor& mat, const Tensor& vec),                   \
     (input, beta, alpha, mat, vec), addmv(input, mat, vec, beta, alpha), tensor_only, deprecated, accepts(kNumbers))  \
  OP(PYTHON_FORM, Tensor, addmv, method_beta,                                                                          \
     (const Tensor& input, RealScalar beta, const Tensor& mat, const Tensor& vec), (input, beta, mat, vec),            \
     addmv(input, mat, vec, beta), tensor_only, deprecated, accepts(kNumbers))                                         \
  OP(METHOD, Tensor, addmv, (const Tensor& mat, const Tensor& vec, Kw<RealScalar> beta = 1, RealScalar alpha = 1),     \
     (mat, vec, beta, alpha), composite, exact_out, casts(none, lower), accepts(kNumbers))                             \
  OP(PYTHON_FORM, Tensor, addmv, complex_factor, (const Tensor& input, const Tensor& mat, const Tensor& vec,           \
     Kw<Scalar> beta = 1, Scalar alpha = 1), (input, mat, vec, beta, alpha),                                           \
     with_factors(addmv, input, mat, vec, beta, alpha), method, exact_out, accepts(kNumbers))                          \
  OP(METHOD_OUT, kron, (const Tensor& other), (other))                                                                 \
  OP(ALIAS, ger, outer)
