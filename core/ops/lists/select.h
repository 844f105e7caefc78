// The op list, choices between values. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SELECT(OP)                                                                                           \
  OP(POINTWISE, _clamp_min, ClampMin, (const Operand& min), (min), hidden)                                             \
  OP(POINTWISE, _clamp_max, ClampMax, (const Operand& max), (max), hidden)                                             \
  OP(POINTWISE, _clamp_between, ClampBetween, (const Operand& min, const Operand& max), (min, max), hidden)            \
  OP(POINTWISE, _clamp_by_tensors, ClampByTensors, (const Operand& min, const Operand& max), (min, max), hidden)       \
  OP(POINTWISE_FUNCTION, _equals_extremum, EqualsExtremum, (const Tensor& input, const Tensor& extremum),              \
     (input, extremum), hidden)                                                                                        \
  OP(POINTWISE_FUNCTION, _share_of_equals, ShareOfEquals,                                                              \
     (const Tensor& equal, const Tensor& grad, const Tensor& count), (equal, grad, count), hidden)                     \
  OP(METHOD_INPLACE_OUT, clamp_min, (const Operand& min), (min), accepts(kBool | kReals))                              \
  OP(METHOD_INPLACE_OUT, clamp_max, (const Operand& max), (max), accepts(kBool | kReals))                              \
  OP(METHOD_INPLACE_OUT, clamp, (const MaybeOperand& min = {}, const MaybeOperand& max = {}), (min, max),              \
     accepts(kBool | kReals), gives(Gives::arithmetic))                                                                \
  OP(POINTWISE_FUNCTION, where, Where, (const Tensor& condition, const Operand& input, const Operand& other),          \
     (condition, input, other), exact_out)                                                                             \
  OP(PYTHON_FORM, Tensor, where, self, (const Tensor& input, const Tensor& condition, const Operand& other),           \
     (input, condition, other), ops::where(condition, input, other, Out{}), tensor_only)                               \
  OP(FUNCTION_AS, TensorVector, where, condition, (const Tensor& condition), (condition), composite, no_gradient)      \
  OP(ALIAS, clip, clamp)
