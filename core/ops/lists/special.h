// The op list, special functions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SPECIAL(OP)                                                                                          \
  OP(POINTWISE, lgamma, Lgamma, (), (), inplace, out)                                                                  \
  OP(POINTWISE, digamma, Digamma, (), (), inplace, out)                                                                \
  OP(POINTWISE, polygamma, Polygamma, (int64_t n), (n), inplace, tensor_only)                                          \
  OP(FORM, Tensor, polygamma, n, (int64_t n, const Tensor& input), (n, input), polygamma(input, n), out,               \
     accepts(kBool | kReals), gives(Gives::floating))                                                                  \
  OP(METHOD_INPLACE, Tensor, mvlgamma, (int64_t p), (p), composite, out, accepts(kReals),                              \
     gives(Gives::floating))                                                                                           \
  OP(POINTWISE, erfinv, Erfinv, (), (), inplace, out, casts(none, float32))                                            \
  OP(POINTWISE, ndtr, Ndtr, (), (), in_special, no_method, out)                                                        \
  OP(POINTWISE, ndtri, Ndtri, (), (), in_special, no_method, out)                                                      \
  OP(POINTWISE, log_ndtr, LogNdtr, (), (), in_special, no_method, out)                                                 \
  OP(POINTWISE, i0, I0, (), (), inplace, out)                                                                          \
  OP(POINTWISE, i0e, I0e, (), (), in_special, no_method, out)                                                          \
  OP(POINTWISE, i1, I1, (), (), in_special, no_method, out)                                                            \
  OP(POINTWISE, i1e, I1e, (), (), in_special, no_method, out)                                                          \
  OP(POINTWISE, entr, Entr, (), (), in_special, no_method, out)                                                        \
  OP(POINTWISE, _special_function, SpecialFunction, (int64_t which), (which), hidden)                                  \
  OP(POINTWISE, _orthogonal_polynomial, OrthogonalPolynomial, (const Operand& n, int64_t family, int64_t order),       \
     (n, family, order), hidden)                                                                                       \
  OP(POINTWISE, _zeta_slope, ZetaSlope, (const Tensor& other), (other), hidden)                                        \
  OP(POINTWISE, _igamma_slope, IgammaSlope, (const Tensor& other), (other), hidden)                                    \
  OP(POINTWISE, _gamma_density, GammaDensity, (const Tensor& other), (other), hidden)                                  \
  OP(POINTWISE, igamma, Igamma, (const Tensor& other), (other), inplace, out)                                          \
  OP(POINTWISE, igammac, Igammac, (const Tensor& other), (other), inplace, out)                                        \
  OP(POINTWISE, zeta, Zeta, (const Operand& other), (other), in_special, no_method, out)                               \
  OP(FORM, Tensor, zeta, Scalar_Tensor, (Scalar self, const Tensor& other), (self, other),                             \
     zeta(wrapped(self), other), in_special, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))    \
  OP(FUNCTION, Tensor, bessel_j0, (const Tensor& input), (input), composite, in_special, out,                          \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, bessel_j1, (const Tensor& input), (input), composite, in_special, out,                          \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, bessel_y0, (const Tensor& input), (input), composite, in_special, out,                          \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, bessel_y1, (const Tensor& input), (input), composite, in_special, out,                          \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, modified_bessel_i0, (const Tensor& input), (input), composite, in_special, out,                 \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, modified_bessel_i1, (const Tensor& input), (input), composite, in_special, out,                 \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, modified_bessel_k0, (const Tensor& input), (input), composite, in_special, out,                 \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, modified_bessel_k1, (const Tensor& input), (input), composite, in_special, out,                 \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, erfcx, (const Tensor& input), (input), composite, in_special, out,                              \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, airy_ai, (const Tensor& x), (x), composite, in_special, out,                                    \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, scaled_modified_bessel_k0, (const Tensor& x), (x), composite, in_special, out,                  \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, scaled_modified_bessel_k1, (const Tensor& x), (x), composite, in_special, out,                  \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, spherical_bessel_j0, (const Tensor& x), (x), composite, in_special, out,                        \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FUNCTION, Tensor, chebyshev_polynomial_t, (const Tensor& x, const Operand& n), (x, n), composite, in_special,     \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, chebyshev_polynomial_t, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                         \
     chebyshev_polynomial_t(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                 \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, chebyshev_polynomial_u, (const Tensor& x, const Operand& n), (x, n), composite, in_special,     \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, chebyshev_polynomial_u, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                         \
     chebyshev_polynomial_u(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                 \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, chebyshev_polynomial_v, (const Tensor& x, const Operand& n), (x, n), composite, in_special,     \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, chebyshev_polynomial_v, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                         \
     chebyshev_polynomial_v(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                 \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, chebyshev_polynomial_w, (const Tensor& x, const Operand& n), (x, n), composite, in_special,     \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, chebyshev_polynomial_w, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                         \
     chebyshev_polynomial_w(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                 \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, shifted_chebyshev_polynomial_t, (const Tensor& x, const Operand& n), (x, n), composite,         \
     in_special, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                \
  OP(FORM, Tensor, shifted_chebyshev_polynomial_t, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                 \
     shifted_chebyshev_polynomial_t(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),         \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, shifted_chebyshev_polynomial_u, (const Tensor& x, const Operand& n), (x, n), composite,         \
     in_special, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                \
  OP(FORM, Tensor, shifted_chebyshev_polynomial_u, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                 \
     shifted_chebyshev_polynomial_u(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),         \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, shifted_chebyshev_polynomial_v, (const Tensor& x, const Operand& n), (x, n), composite,         \
     in_special, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                \
  OP(FORM, Tensor, shifted_chebyshev_polynomial_v, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                 \
     shifted_chebyshev_polynomial_v(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),         \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, shifted_chebyshev_polynomial_w, (const Tensor& x, const Operand& n), (x, n), composite,         \
     in_special, out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                \
  OP(FORM, Tensor, shifted_chebyshev_polynomial_w, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                 \
     shifted_chebyshev_polynomial_w(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),         \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, hermite_polynomial_h, (const Tensor& x, const Operand& n), (x, n), composite, in_special, out,  \
     accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                                 \
  OP(FORM, Tensor, hermite_polynomial_h, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                           \
     hermite_polynomial_h(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                   \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, hermite_polynomial_he, (const Tensor& x, const Operand& n), (x, n), composite, in_special,      \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, hermite_polynomial_he, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                          \
     hermite_polynomial_he(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                  \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, laguerre_polynomial_l, (const Tensor& x, const Operand& n), (x, n), composite, in_special,      \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, laguerre_polynomial_l, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                          \
     laguerre_polynomial_l(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                  \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, legendre_polynomial_p, (const Tensor& x, const Operand& n), (x, n), composite, in_special,      \
     out, accepts(kBool | kIntegers | kWideFloats), gives(Gives::floating))                                            \
  OP(FORM, Tensor, legendre_polynomial_p, Scalar_Tensor, (Scalar x, const Tensor& n), (x, n),                          \
     legendre_polynomial_p(wrapped(x), n), in_special, out, accepts(kBool | kIntegers | kWideFloats),                  \
     gives(Gives::floating))
