// The op list, comparisons, logic and bits. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_COMPARE(OP)                                                                                          \
  OP(POINTWISE, isnan, IsNan, (), ())                                                                                  \
  OP(POINTWISE, isinf, IsInf, (), ())                                                                                  \
  OP(POINTWISE, isfinite, IsFinite, (), ())                                                                            \
  OP(POINTWISE, logical_not, LogicalNot, (), (), inplace, out)                                                         \
  OP(POINTWISE, bitwise_not, BitwiseNot, (), (), inplace, out)                                                         \
  OP(POINTWISE, eq, Eq, (const Operand& other), (other), inplace, out)                                                 \
  OP(POINTWISE, ne, Ne, (const Operand& other), (other), inplace, out)                                                 \
  OP(POINTWISE, lt, Lt, (const Operand& other), (other), inplace, out)                                                 \
  OP(POINTWISE, le, Le, (const Operand& other), (other), inplace, out)                                                 \
  OP(POINTWISE, gt, Gt, (const Operand& other), (other), inplace, out)                                                 \
  OP(POINTWISE, ge, Ge, (const Operand& other), (other), inplace, out)                                                 \
  OP(POINTWISE, logical_and, LogicalAnd, (const Tensor& other), (other), inplace, out)                                 \
  OP(POINTWISE, logical_or, LogicalOr, (const Tensor& other), (other), inplace, out)                                   \
  OP(POINTWISE, logical_xor, LogicalXor, (const Tensor& other), (other), inplace, out)                                 \
  OP(POINTWISE, bitwise_and, BitwiseAnd, (const Operand& other), (other), inplace, out)                                \
  OP(POINTWISE, bitwise_or, BitwiseOr, (const Operand& other), (other), inplace, out)                                  \
  OP(POINTWISE, bitwise_xor, BitwiseXor, (const Operand& other), (other), inplace, out)                                \
  OP(FORM, Tensor, bitwise_and, Scalar_Tensor, (Scalar input, const Tensor& other), (input, other),                    \
     bitwise_and(wrapped(input), other), accepts(kBool | kIntegers))                                                   \
  OP(FORM, Tensor, bitwise_or, Scalar_Tensor, (Scalar input, const Tensor& other), (input, other),                     \
     bitwise_or(wrapped(input), other), accepts(kBool | kIntegers))                                                    \
  OP(FORM, Tensor, bitwise_xor, Scalar_Tensor, (Scalar input, const Tensor& other), (input, other),                    \
     bitwise_xor(wrapped(input), other), accepts(kBool | kIntegers))                                                   \
  OP(METHOD, bool, equal, (const Tensor& other), (other), composite, no_gradient, gives(Gives::boolean))               \
  OP(METHOD, Tensor, isclose,                                                                                          \
     (const Tensor& other, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false),                          \
     (other, rtol, atol, equal_nan), composite, no_gradient, gives(Gives::boolean))                                    \
  OP(POINTWISE_FUNCTION, _isclose, IsClose,                                                                            \
     (const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan),                             \
     (input, other, rtol, atol, equal_nan), hidden)                                                                    \
  OP(METHOD, bool, allclose, (const Tensor& other, double rtol = 1e-05, double atol = 1e-08, bool equal_nan = false),  \
     (other, rtol, atol, equal_nan), composite, no_gradient, gives(Gives::boolean))                                    \
  OP(POINTWISE, signbit, SignBit, (), (), exact_out)                                                                   \
  OP(POINTWISE, isposinf, IsPosInf, (), (), exact_out)                                                                 \
  OP(POINTWISE, isneginf, IsNegInf, (), (), exact_out)                                                                 \
  OP(POINTWISE, bitwise_left_shift, LeftShift, (const Operand& other), (other), inplace, out)                          \
  OP(POINTWISE, bitwise_right_shift, RightShift, (const Operand& other), (other), inplace, out)                        \
  OP(FORM, Tensor, bitwise_left_shift, Scalar_Tensor, (Scalar self, const Tensor& other), (self, other),               \
     bitwise_left_shift(wrapped(self), other), accepts(kIntegers))                                                     \
  OP(FORM, Tensor, bitwise_right_shift, Scalar_Tensor, (Scalar self, const Tensor& other), (self, other),              \
     bitwise_right_shift(wrapped(self), other), accepts(kIntegers))                                                    \
  OP(POINTWISE, gcd, Gcd, (const Tensor& other), (other), inplace, out)                                                \
  OP(POINTWISE, lcm, Lcm, (const Tensor& other), (other), inplace, out)                                                \
  OP(METHOD, Tensor, isreal, (), (), composite, no_gradient, gives(Gives::boolean))                                    \
  OP(FUNCTION, Tensor, isin,                                                                                           \
     (const Operand& elements, const Operand& test_elements, Kw<bool> assume_unique = false, bool invert = false),     \
     (elements, test_elements, assume_unique, invert), composite, exact_out, no_gradient, accepts(kReals),             \
     gives(Gives::boolean))                                                                                            \
  OP(PYTHON_FORM, Tensor, isin, Scalar_Tensor,                                                                         \
     (Scalar element, const Tensor& test_elements, Kw<bool> assume_unique = false, bool invert = false),               \
     (element, test_elements, assume_unique, invert), isin(wrapped(element), test_elements, assume_unique, invert),    \
     exact_out, no_gradient, accepts(kReals), gives(Gives::boolean))                                                   \
  OP(PYTHON_FORM, Tensor, isin, Tensor_Scalar,                                                                         \
     (const Tensor& elements, Scalar test_element, Kw<bool> assume_unique = false, bool invert = false),               \
     (elements, test_element, assume_unique, invert), isin(elements, wrapped(test_element), assume_unique, invert),    \
     exact_out, no_gradient, accepts(kReals), gives(Gives::boolean))                                                   \
  OP(ALIAS, not_equal, ne)                                                                                             \
  OP(ALIAS, less, lt)                                                                                                  \
  OP(ALIAS, less_equal, le)                                                                                            \
  OP(ALIAS, greater, gt)                                                                                               \
  OP(ALIAS, greater_equal, ge)
