// The op list, copies and fills. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_COPY(OP)                                                                                             \
  OP(METHOD, Tensor, clone, (Kw<Text> memory_format = "preserve_format"), (memory_format))                             \
  OP(METHOD, Tensor, _to_copy, (MaybeDType dtype = {}, MaybeDevice device = {}, bool non_blocking = false),            \
     (dtype, device, non_blocking), hidden, memory_format, any_device)                                                 \
  OP(METHOD, Tensor, copy_, (const Operand& other, bool non_blocking = false), (other, non_blocking), tensor_only,     \
     any_device)                                                                                                       \
  OP(METHOD_AS_INPLACE, fill, Tensor, (const Tensor& value), (value), composite, also_function, any_device)            \
  OP(METHOD, Tensor, fill_, (Scalar value), (value))                                                                   \
  OP(FORM, Tensor, fill, Scalar, (const Tensor& input, Scalar value), (input, value), fill_(clone(input), value))      \
  OP(FORM, Tensor, fill, Tensor, (const Tensor& input, const Tensor& value), (input, value),                           \
     fill_(clone(input), value), any_device)                                                                           \
  OP(METHOD, Tensor, contiguous, (Kw<Text> memory_format = "contiguous_format"), (memory_format), composite,           \
     tensor_only)                                                                                                      \
  OP(METHOD, Tensor, resolve_conj, (), (), composite)                                                                  \
  OP(METHOD, Tensor, resolve_neg, (), (), composite)                                                                   \
  OP(METHOD, Tensor, zero_, (), (), composite)
