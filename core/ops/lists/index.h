// The op list, reading and writing at indices. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_INDEX(OP)                                                                                            \
  OP(METHOD, Tensor, _index, (MaybeTensorList indices), (indices), hidden, any_device)                                 \
  OP(METHOD, Tensor, index_put_, (MaybeTensorList indices, const Operand& values, bool accumulate = false),            \
     (indices, values, accumulate), any_device)                                                                        \
  OP(METHOD, Tensor, index_put, (MaybeTensorList indices, const Operand& values, bool accumulate = false),             \
     (indices, values, accumulate), composite, any_device, casts(none, widest))                                        \
  OP(METHOD, Tensor, index_select, (int64_t dim, const Tensor& index), (dim, index), exact_out)                        \
  OP(METHOD, Tensor, index_add_, (int64_t dim, const Tensor& index, const Tensor& source, Kw<RealScalar> alpha = 1),   \
     (dim, index, source, alpha), tensor_only)                                                                         \
  OP(METHOD, Tensor, index_add, (int64_t dim, const Tensor& index, const Tensor& source, Kw<RealScalar> alpha = 1),    \
     (dim, index, source, alpha), composite, exact_out)                                                                \
  OP(PYTHON_FORM, Tensor, index_add, complex_factor, (const Tensor& input, int64_t dim, const Tensor& index,           \
     const Tensor& source, Kw<Scalar> alpha), (input, dim, index, source, alpha),                                      \
     index_add(input, dim, index, mul(source, wrapped(alpha)), 1), method, exact_out)                                  \
  OP(PYTHON_FORM, Tensor, index_add_, complex_factor, (const Tensor& input, int64_t dim, const Tensor& index,          \
     const Tensor& source, Kw<Scalar> alpha), (input, dim, index, source, alpha),                                      \
     index_add_(input, dim, index, mul(source, wrapped(alpha)), 1), tensor_only)                                       \
  OP(INPLACE, index_fill, (int64_t dim, const Tensor& index, const Operand& value), (dim, index, value), any_device)   \
  OP(METHOD, Tensor, flip, (IntTuple dims), (dims))                                                                    \
  OP(METHOD, Tensor, gather, (int64_t dim, const Tensor& index, Kw<bool> sparse_grad = false),                         \
     (dim, index, sparse_grad), exact_out)                                                                             \
  OP(METHOD, Tensor, scatter_add_, (int64_t dim, const Tensor& index, const Tensor& src), (dim, index, src),           \
     tensor_only)                                                                                                      \
  OP(METHOD, Tensor, scatter_add, (int64_t dim, const Tensor& index, const Tensor& src), (dim, index, src),            \
     composite, exact_out, casts(none, widest))                                                                        \
  OP(METHOD, Tensor, nonzero, (), (), exact_out, no_gradient, gives(Gives::int64))                                     \
  OP(FORM_METHOD, TensorOrTensors, nonzero, as_tuple, (Kw<bool> as_tuple), (as_tuple), _nonzero(input, as_tuple),      \
     no_gradient, gives(Gives::int64))                                                                                 \
  OP(FORM_METHOD, Tensor, argwhere, all, (), (), nonzero(input), no_gradient, gives(Gives::int64))                     \
  OP(METHOD_INPLACE_WRITTEN, masked_fill, (const Tensor& mask, const Operand& value), (mask, value))                   \
  OP(METHOD, Tensor, masked_select, (const Tensor& mask), (mask), composite, exact_out)                                \
  OP(FUNCTION, Tensor, cat, (TensorList tensors, int64_t dim = 0), (tensors, dim), out, casts(widest, widest))         \
  OP(FUNCTION, Tensor, stack, (TensorList tensors, int64_t dim = 0), (tensors, dim), composite, out)                   \
  OP(FUNCTION, Tensor, embedding,                                                                                      \
     (const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1, bool scale_grad_by_freq = false,          \
      bool sparse = false), (weight, indices, padding_idx, scale_grad_by_freq, sparse))                                \
  OP(METHOD, Tensor, scatter_, (int64_t dim, const Tensor& index, const Operand& src), (dim, index, src), tensor_only) \
  OP(METHOD, Tensor, scatter, (int64_t dim, const Tensor& index, const Operand& src), (dim, index, src), composite,    \
     exact_out)                                                                                                        \
  OP(PYTHON_FORM, Tensor, scatter_, value, (const Tensor& input, int64_t dim, const Tensor& index, Scalar value),      \
     (input, dim, index, value), scatter_(input, dim, index, wrapped(value)), tensor_only)                             \
  OP(PYTHON_FORM, Tensor, scatter, value, (const Tensor& input, int64_t dim, const Tensor& index, Scalar value),       \
     (input, dim, index, value), scatter(input, dim, index, wrapped(value)), method, exact_out)                        \
  OP(METHOD_AS_INPLACE, scatter, by, (int64_t dim, const Tensor& index, const Operand& src, Kw<Text> reduce),          \
     (dim, index, src, reduce), composite)                                                                             \
  OP(METHOD_AS, Tensor, scatter, by, (int64_t dim, const Tensor& index, const Operand& src, Kw<Text> reduce),          \
     (dim, index, src, reduce), composite, exact_out)                                                                  \
  OP(PYTHON_FORM, Tensor, scatter_, value_reduce,                                                                      \
     (const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Kw<Text> reduce),                           \
     (input, dim, index, value, reduce), scatter_(input, dim, index, wrapped(value), reduce), tensor_only)             \
  OP(PYTHON_FORM, Tensor, scatter, value_reduce,                                                                       \
     (const Tensor& input, int64_t dim, const Tensor& index, Scalar value, Kw<Text> reduce),                           \
     (input, dim, index, value, reduce), scatter(input, dim, index, wrapped(value), reduce), method, exact_out)        \
  OP(METHOD, Tensor, _scatter_combine_, (int64_t dim, const Tensor& index, const Tensor& src, Text reduce),            \
     (dim, index, src, reduce), hidden)                                                                                \
  OP(METHOD, Tensor, _scatter_reduce,                                                                                  \
     (int64_t dim, const Tensor& index, const Tensor& src, Text reduce, bool include_self),                            \
     (dim, index, src, reduce, include_self), hidden)                                                                  \
  OP(METHOD, Tensor, scatter_reduce_,                                                                                  \
     (int64_t dim, const Tensor& index, const Tensor& src, Text reduce, Kw<bool> include_self = true),                 \
     (dim, index, src, reduce, include_self), composite, tensor_only)                                                  \
  OP(METHOD, Tensor, scatter_reduce,                                                                                   \
     (int64_t dim, const Tensor& index, const Tensor& src, Text reduce, Kw<bool> include_self = true),                 \
     (dim, index, src, reduce, include_self), composite, exact_out)                                                    \
  OP(METHOD, Tensor, index_copy_, (int64_t dim, const Tensor& index, const Tensor& source), (dim, index, source),      \
     composite, tensor_only)                                                                                           \
  OP(METHOD, Tensor, index_copy, (int64_t dim, const Tensor& index, const Tensor& source), (dim, index, source),       \
     composite, exact_out)                                                                                             \
  OP(METHOD, Tensor, index_reduce_,                                                                                    \
     (int64_t dim, const Tensor& index, const Tensor& source, Text reduce, Kw<bool> include_self = true),              \
     (dim, index, source, reduce, include_self), composite, tensor_only)                                               \
  OP(METHOD, Tensor, index_reduce,                                                                                     \
     (int64_t dim, const Tensor& index, const Tensor& source, Text reduce, Kw<bool> include_self = true),              \
     (dim, index, source, reduce, include_self), composite, exact_out)                                                 \
  OP(METHOD, Tensor, take, (const Tensor& index), (index), composite, exact_out)                                       \
  OP(METHOD, Tensor, take_along_dim, (const Tensor& indices, MaybeInt dim = {}), (indices, dim), composite, exact_out) \
  OP(METHOD, Tensor, put_, (const Tensor& index, const Tensor& source, bool accumulate = false),                       \
     (index, source, accumulate), composite, tensor_only)                                                              \
  OP(METHOD, Tensor, put, (const Tensor& index, const Tensor& source, bool accumulate = false),                        \
     (index, source, accumulate), composite)                                                                           \
  OP(METHOD, Tensor, masked_scatter_, (const Tensor& mask, const Tensor& source), (mask, source), composite,           \
     tensor_only)                                                                                                      \
  OP(METHOD, Tensor, masked_scatter, (const Tensor& mask, const Tensor& source), (mask, source), composite)            \
  OP(METHOD, Tensor, select_scatter, (const Tensor& src, int64_t dim, int64_t index), (src, dim, index), composite)    \
  OP(METHOD, Tensor, as_strided_scatter,                                                                               \
     (const Tensor& src, IntTuple size, IntTuple stride, MaybeInt storage_offset = {}),                                \
     (src, size, stride, storage_offset), composite)                                                                   \
  OP(METHOD, Tensor, slice_scatter,                                                                                    \
     (const Tensor& src, int64_t dim = 0, MaybeInt start = {}, MaybeInt end = {}, int64_t step = 1),                   \
     (src, dim, start, end, step), composite, exact_out)                                                               \
  OP(METHOD, Tensor, diagonal_scatter,                                                                                 \
     (const Tensor& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1), (src, offset, dim1, dim2),           \
     composite)                                                                                                        \
  OP(METHOD, Tensor, one_hot, (int64_t num_classes = -1), (num_classes), composite, functional, no_gradient,           \
     gives(Gives::int64))                                                                                              \
  OP(FUNCTION, Tensor, segment_reduce,                                                                                 \
     (const Tensor& data, Text reduce, Kw<MaybeTensor> lengths = {}, Kw<MaybeTensor> indices = {},                     \
      Kw<MaybeTensor> offsets = {}, Kw<int64_t> axis = 0, Kw<bool> unsafe = false, Kw<MaybeScalar> initial = {}),      \
     (data, reduce, lengths, indices, offsets, axis, unsafe, initial), composite, accepts(kFloats))                    \
  OP(ALIAS, concat, cat)                                                                                               \
  OP(ALIAS, concatenate, cat)                                                                                          \
  OP(ALIAS, _segment_reduce, segment_reduce)
