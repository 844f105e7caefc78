// The op list, arithmetic. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_ARITHMETIC(OP)                                                                                       \
  OP(POINTWISE, neg, Neg, (), (), inplace, exact_out)                                                                  \
  OP(POINTWISE, abs, Abs, (), (), inplace, exact_out)                                                                  \
  OP(POINTWISE, sign, Sign, (), (), inplace, exact_out)                                                                \
  OP(POINTWISE, sgn, Sgn, (), (), inplace, exact_out)                                                                  \
  OP(POINTWISE, square, Square, (), (), inplace, out)                                                                  \
  OP(POINTWISE, sqrt, Sqrt, (), (), inplace, out)                                                                      \
  OP(POINTWISE, _root, Root, (RealScalar exponent), (exponent), hidden)                                                \
  OP(POINTWISE, rsqrt, Rsqrt, (), (), inplace, out, casts(none, float32))                                              \
  OP(POINTWISE, reciprocal, Reciprocal, (), (), inplace, out, casts(none, float32))                                    \
  OP(POINTWISE, floor, Floor, (), (), inplace, exact_out)                                                              \
  OP(POINTWISE, ceil, Ceil, (), (), inplace, exact_out)                                                                \
  OP(POINTWISE, conj_physical, ConjPhysical, (), (), inplace, exact_out)                                               \
  OP(POINTWISE, add, Add, (const Operand& other, Kw<RealScalar> alpha = 1), (other, alpha), inplace, out,              \
     number_first, typed_alpha)                                                                                        \
  OP(FORM_METHOD, Tensor, add, alpha, (RealScalar alpha, const Tensor& other), (alpha, other),                         \
     add(input, other, alpha), deprecated, out, typed_alpha)                                                           \
  OP(FORM_INPLACE, add, alpha, (RealScalar alpha, const Tensor& other), (alpha, other),                                \
     ops::add(input, other, alpha, Out{&input, Out::inplace}), deprecated, typed_alpha)                                \
  OP(COMPLEX_FACTOR, add, alpha, (const Operand& other), (const Tensor& other), (other), number_first,                 \
     accepts(kNumbers))                                                                                                \
  OP(POINTWISE, sub, Sub, (const Operand& other, Kw<RealScalar> alpha = 1), (other, alpha), inplace, out,              \
     number_first, typed_alpha)                                                                                        \
  OP(FORM_METHOD, Tensor, sub, alpha, (RealScalar alpha, const Tensor& other), (alpha, other),                         \
     sub(input, other, alpha), deprecated, out, typed_alpha, accepts(kNumbers))                                        \
  OP(FORM_INPLACE, sub, alpha, (RealScalar alpha, const Tensor& other), (alpha, other),                                \
     ops::sub(input, other, alpha, Out{&input, Out::inplace}), deprecated, typed_alpha)                                \
  OP(COMPLEX_FACTOR, sub, alpha, (const Operand& other), (const Tensor& other), (other), number_first,                 \
     accepts(kNumbers))                                                                                                \
  OP(POINTWISE, mul, Mul, (const Operand& other), (other), inplace, out, number_first)                                 \
  OP(POINTWISE, div, Div, (const Operand& other), (other), inplace, out, number_first)                                 \
  OP(METHOD_INPLACE_OUT_AS, div, Tensor_mode, (const Operand& other, Kw<MaybeText> rounding_mode),                     \
     (other, rounding_mode), number_first, gives(Gives::floating))                                                     \
  OP(POINTWISE, floor_divide, FloorDivide, (const Operand& other), (other), inplace, out, number_first)                \
  OP(POINTWISE, _trunc_divide, TruncDivide, (const Operand& other), (other), hidden)                                   \
  OP(POINTWISE, remainder, Remainder, (const Operand& other), (other), inplace, out)                                   \
  OP(FORM, Tensor, remainder, Scalar_Tensor, (Scalar input, const Tensor& other), (input, other),                      \
     remainder(wrapped(input), other), accepts(kReals))                                                                \
  OP(POINTWISE, pow, Pow, (const Operand& exponent), (exponent), inplace, out, casts(none, float32))                   \
  OP(FORM, Tensor, pow, Scalar, (Scalar input, const Tensor& exponent), (input, exponent),                             \
     pow(wrapped(input), exponent), out, accepts(kNumbers))                                                            \
  OP(POINTWISE, maximum, Maximum, (const Tensor& other), (other), out)                                                 \
  OP(POINTWISE, minimum, Minimum, (const Tensor& other), (other), out)                                                 \
  OP(METHOD, Tensor, conj, (), (), composite)                                                                          \
  OP(ALIAS, negative, neg)                                                                                             \
  OP(ALIAS, absolute, abs)                                                                                             \
  OP(ALIAS, subtract, sub)                                                                                             \
  OP(ALIAS, multiply, mul)                                                                                             \
  OP(FORM, Tensor, rsub, Tensor, (const Tensor& input, const Tensor& other, Kw<RealScalar> alpha = 1),                 \
     (input, other, alpha), sub(other, input, alpha), typed_alpha, accepts(kNumbers))                                  \
  OP(FORM, Tensor, rsub, Scalar, (const Tensor& input, Scalar other, RealScalar alpha = 1), (input, other, alpha),     \
     sub(wrapped(other), input, alpha), typed_alpha, accepts(kNumbers))                                                \
  OP(PYTHON_FORM, Tensor, rsub, complex_factor, (const Tensor& input, const Operand& other, Kw<Scalar> alpha),         \
     (input, other, alpha), with_factor(ops::sub, {}, alpha, other, input), typed_alpha, accepts(kNumbers))            \
  OP(ALIAS, divide, div)                                                                                               \
  OP(ALIAS, true_divide, div)
