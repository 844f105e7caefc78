// The op list, reading and writing at places. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_INDEX(OP)                                                                                            \
  OP(METHOD, Tensor, _index, (MaybeTensorList indices), (indices), hidden, any_device)                                 \
  OP(METHOD, Tensor, index_put_, (MaybeTensorList indices, const Operand& values, bool accumulate = false),            \
     (indices, values, accumulate), any_device)                                                                        \
  OP(METHOD, Tensor, index_put, (MaybeTensorList indices, const Operand& values, bool accumulate = false),             \
     (indices, values, accumulate), composite, any_device, casts(none, widest))                                        \
  OP(METHOD, Tensor, index_select, (int64_t dim, const Tensor& index), (dim, index), out)                              \
  OP(METHOD, Tensor, index_add_, (int64_t dim, const Tensor& index, const Tensor& source, Kw<RealScalar> alpha = 1),   \
     (dim, index, source, alpha), tensor_only)                                                                         \
  OP(METHOD, Tensor, index_add, (int64_t dim, const Tensor& index, const Tensor& source, Kw<RealScalar> alpha = 1),    \
     (dim, index, source, alpha), composite, out)                                                                      \
  OP(INPLACE, index_fill, (int64_t dim, const Tensor& index, const Operand& value), (dim, index, value), any_device)   \
  OP(METHOD, Tensor, flip, (IntList dims), (dims))                                                                     \
  OP(METHOD, Tensor, gather, (int64_t dim, const Tensor& index, Kw<bool> sparse_grad = false),                         \
     (dim, index, sparse_grad), out)                                                                                   \
  OP(METHOD, Tensor, scatter_add_, (int64_t dim, const Tensor& index, const Tensor& src), (dim, index, src),           \
     tensor_only)                                                                                                      \
  OP(METHOD, Tensor, scatter_add, (int64_t dim, const Tensor& index, const Tensor& src), (dim, index, src),            \
     composite, out, casts(none, widest))                                                                              \
  OP(METHOD, Tensor, nonzero, (), (), out, no_gradient)                                                                \
  OP(FORM_METHOD, TensorOrTensors, nonzero, as_tuple, (Kw<bool> as_tuple), (as_tuple), _nonzero(input, as_tuple),      \
     no_gradient)                                                                                                      \
  OP(METHOD_INPLACE, Tensor, masked_fill, (const Tensor& mask, const Operand& value), (mask, value), composite)        \
  OP(METHOD, Tensor, masked_select, (const Tensor& mask), (mask), composite, out)                                      \
  OP(FUNCTION, Tensor, cat, (TensorList tensors, int64_t dim = 0), (tensors, dim), out, casts(widest, widest))         \
  OP(FUNCTION, Tensor, stack, (TensorList tensors, int64_t dim = 0), (tensors, dim), composite, out)                   \
  OP(FUNCTION, Tensor, embedding,                                                                                      \
     (const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1, bool scale_grad_by_freq = false,          \
      bool sparse = false), (weight, indices, padding_idx, scale_grad_by_freq, sparse))                                \
  OP(ALIAS, concat, cat)                                                                                               \
  OP(ALIAS, concatenate, cat)
