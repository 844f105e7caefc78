// The op list, trigonometric and hyperbolic functions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_TRIGONOMETRIC(OP)                                                                                    \
  OP(POINTWISE, sin, Sin, (), (), inplace, out)                                                                        \
  OP(POINTWISE, cos, Cos, (), (), inplace, out)                                                                        \
  OP(POINTWISE, tanh, Tanh, (), (), inplace, out)                                                                      \
  OP(POINTWISE, atan2, Atan2, (const Tensor& other), (other), inplace, out, casts(none, widest))                       \
  OP(POINTWISE, tan, Tan, (), (), inplace, out, casts(none, float32))                                                  \
  OP(POINTWISE, asin, Asin, (), (), inplace, out, casts(none, float32))                                                \
  OP(POINTWISE, acos, Acos, (), (), inplace, out, casts(none, float32))                                                \
  OP(POINTWISE, atan, Atan, (), (), inplace, out)                                                                      \
  OP(POINTWISE, sinh, Sinh, (), (), inplace, out, casts(none, float32))                                                \
  OP(POINTWISE, cosh, Cosh, (), (), inplace, out, casts(none, float32))                                                \
  OP(POINTWISE, asinh, Asinh, (), (), inplace, out)                                                                    \
  OP(POINTWISE, acosh, Acosh, (), (), inplace, out)                                                                    \
  OP(POINTWISE, atanh, Atanh, (), (), inplace, out)                                                                    \
  OP(POINTWISE, sinc, Sinc, (), (), inplace, out)                                                                      \
  OP(POINTWISE, deg2rad, Deg2Rad, (), (), inplace, out)                                                                \
  OP(POINTWISE, rad2deg, Rad2Deg, (), (), inplace, out)                                                                \
  OP(POINTWISE, hypot, Hypot, (const Tensor& other), (other), inplace, out)                                            \
  OP(POINTWISE, _angle, Angle, (), (), hidden)                                                                         \
  OP(METHOD, Tensor, angle, (), (), composite, out, gives(Gives::real_floating))                                       \
  OP(POINTWISE_FUNCTION, complex, MakeComplex, (const Tensor& real, const Tensor& imag), (real, imag), exact_out)      \
  OP(POINTWISE_FUNCTION, polar, Polar, (const Tensor& abs, const Tensor& angle), (abs, angle), exact_out)              \
  OP(ALIAS, arctan2, atan2)                                                                                            \
  OP(ALIAS, arcsin, asin)                                                                                              \
  OP(ALIAS, arccos, acos)                                                                                              \
  OP(ALIAS, arctan, atan)                                                                                              \
  OP(ALIAS, arcsinh, asinh)                                                                                            \
  OP(ALIAS, arccosh, acosh)                                                                                            \
  OP(ALIAS, arctanh, atanh)
