// The op list, rounding, remainders, neighbours, interpolation, sums with a factor. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_NUMBERS(OP)                                                                                          \
  OP(POINTWISE, round, Round, (Kw<int64_t> decimals = 0), (decimals), inplace, exact_out)                              \
  OP(POINTWISE, trunc, Trunc, (), (), inplace, exact_out)                                                              \
  OP(POINTWISE, frac, Frac, (), (), inplace, exact_out)                                                                \
  OP(POINTWISE, _nan_to_num, NanToNum, (double nan, double posinf, double neginf), (nan, posinf, neginf), hidden)      \
  OP(METHOD_INPLACE_OUT, nan_to_num, (MaybeDouble nan = {}, MaybeDouble posinf = {}, MaybeDouble neginf = {}),         \
   (nan, posinf, neginf))                                                                                              \
  OP(POINTWISE, fmod, Fmod, (const Operand& other), (other), inplace, out)                                             \
  OP(POINTWISE, fmax, Fmax, (const Tensor& other), (other), out)                                                       \
  OP(POINTWISE, fmin, Fmin, (const Tensor& other), (other), out)                                                       \
  OP(POINTWISE, copysign, Copysign, (const Operand& other), (other), inplace, out)                                     \
  OP(POINTWISE, nextafter, NextAfter, (const Tensor& other), (other), inplace, out)                                    \
  OP(POINTWISE_PAIR, frexp, Frexp, (), (), exact_out, fields("mantissa", "exponent"))                                  \
  OP(POINTWISE, heaviside, Heaviside, (const Tensor& values), (values), inplace, exact_out)                            \
  OP(POINTWISE, lerp, Lerp, (const Tensor& end, const Operand& weight), (end, weight), inplace, out)                   \
  OP(POINTWISE, addcmul, Addcmul, (const Tensor& tensor1, const Tensor& tensor2, Kw<RealScalar> value = 1),            \
   (tensor1, tensor2, value), inplace, out, casts(none, widest))                                                       \
  OP(FORM_METHOD, Tensor, addcmul, value, (RealScalar value, const Tensor& tensor1, const Tensor& tensor2),            \
     (value, tensor1, tensor2), addcmul(input, tensor1, tensor2, value), deprecated, out, accepts(kNumbers))           \
  OP(FORM_INPLACE, addcmul, value, (RealScalar value, const Tensor& tensor1, const Tensor& tensor2),                   \
   (value, tensor1, tensor2), ops::addcmul(input, tensor1, tensor2, value, Out{&input, Out::inplace}), deprecated)     \
  OP(COMPLEX_FACTOR, addcmul, value, (const Tensor& tensor1, const Tensor& tensor2),                                   \
     (const Tensor& tensor1, const Tensor& tensor2), (tensor1, tensor2), accepts(kNumbers))                            \
  OP(POINTWISE, addcdiv, Addcdiv, (const Tensor& tensor1, const Tensor& tensor2, Kw<RealScalar> value = 1),            \
   (tensor1, tensor2, value), inplace, out, casts(none, widest))                                                       \
  OP(FORM_METHOD, Tensor, addcdiv, value, (RealScalar value, const Tensor& tensor1, const Tensor& tensor2),            \
     (value, tensor1, tensor2), addcdiv(input, tensor1, tensor2, value), deprecated, out,                              \
     accepts(kFloats | kComplexes))                                                                                    \
  OP(FORM_INPLACE, addcdiv, value, (RealScalar value, const Tensor& tensor1, const Tensor& tensor2),                   \
   (value, tensor1, tensor2), ops::addcdiv(input, tensor1, tensor2, value, Out{&input, Out::inplace}), deprecated)     \
  OP(COMPLEX_FACTOR, addcdiv, value, (const Tensor& tensor1, const Tensor& tensor2),                                   \
     (const Tensor& tensor1, const Tensor& tensor2), (tensor1, tensor2), accepts(kFloats | kComplexes))                \
  OP(METHOD, Tensor, positive, (), (), composite, accepts(kNumbers))                                                   \
  OP(METHOD_INPLACE_OUT, float_power, (const Operand& exponent), (exponent), gives(Gives::widest))                     \
  OP(FORM, Tensor, float_power, Scalar, (Scalar self, const Tensor& exponent), (self, exponent),                       \
     float_power(wrapped(self), exponent), out, gives(Gives::widest))                                                  \
  OP(METHOD_INPLACE_OUT, ldexp, (const Tensor& other), (other), gives(Gives::floating))                                \
  OP(ALIAS, fix, trunc)
