// The op list, views: other geometry over the same memory. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_VIEW(OP)                                                                                             \
  OP(METHOD, Tensor, view, (IntTuple size), (size), tensor_only)                                                       \
  OP(METHOD_AS, Tensor, view, dtype, (DType dtype), (dtype), tensor_only, no_gradient)                                 \
  OP(METHOD, Tensor, permute, (IntTuple dims), (dims))                                                                 \
  OP(METHOD, Tensor, transpose, (int64_t dim0, int64_t dim1), (dim0, dim1))                                            \
  OP(METHOD, Tensor, expand, (IntTuple size, Kw<bool> implicit = false), (size, implicit), tensor_only)                \
  OP(METHOD, Tensor, _squeeze, (const MaybeDims& dim = {}), (dim), hidden)                                             \
  OP(FORM_METHOD, Tensor, squeeze, all, (), (), _squeeze(input, {}))                                                   \
  OP(FORM_METHOD, Tensor, squeeze, dim, (int64_t dim), (dim), _squeeze(input, dim))                                    \
  OP(FORM_METHOD, Tensor, squeeze, dims, (IntTuple dim), (dim), _squeeze(input, MaybeDims(IntSpan(dim))))              \
  OP(METHOD, Tensor, unsqueeze, (int64_t dim), (dim))                                                                  \
  OP(METHOD, Tensor, select, (int64_t dim, int64_t index), (dim, index))                                               \
  OP(METHOD, Tensor, slice, (int64_t dim = 0, MaybeInt start = {}, MaybeInt end = {}, int64_t step = 1),               \
     (dim, start, end, step), hidden)                                                                                  \
  OP(METHOD, Tensor, diagonal, (int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1), (offset, dim1, dim2))         \
  OP(METHOD, Tensor, as_strided, (IntTuple size, IntTuple stride, MaybeInt storage_offset = {}),                       \
     (size, stride, storage_offset))                                                                                   \
  OP(METHOD, Tensor, reshape, (IntTuple shape), (shape), composite)                                                    \
  OP(METHOD, Tensor, flatten, (int64_t start_dim = 0, int64_t end_dim = -1), (start_dim, end_dim), composite)          \
  OP(METHOD, Tensor, ravel, (), (), composite)                                                                         \
  OP(METHOD, Tensor, view_as, (const Tensor& other), (other), composite, tensor_only, any_device)                      \
  OP(METHOD, Tensor, expand_as, (const Tensor& other), (other), composite, tensor_only, any_device)                    \
  OP(METHOD, Tensor, reshape_as, (const Tensor& other), (other), composite, tensor_only, any_device)                   \
  OP(METHOD, Tensor, t, (), (), composite)                                                                             \
  OP(METHOD, Tensor, mT, (), (), composite, hidden)                                                                    \
  OP(METHOD, Tensor, narrow, (int64_t dim, int64_t start, int64_t length), (dim, start, length), composite)            \
  OP(METHOD_AS, Tensor, narrow, Tensor, (int64_t dim, const Tensor& start, int64_t length), (dim, start, length),      \
     composite, any_device)                                                                                            \
  OP(METHOD, TensorVector, unbind, (int64_t dim = 0), (dim), composite)                                                \
  OP(METHOD, TensorVector, split, (IntList split_size, int64_t dim = 0), (split_size, dim), composite, tensor_only)    \
  OP(PYTHON_FORM, TensorVector, split, function,                                                                       \
     (const Tensor& tensor, IntList split_size_or_sections, int64_t dim = 0), (tensor, split_size_or_sections, dim),   \
     split(tensor, split_size_or_sections, dim))                                                                       \
  OP(METHOD, TensorVector, split_with_sizes, (IntTuple split_sizes, int64_t dim = 0), (split_sizes, dim), composite)   \
  OP(METHOD, TensorVector, chunk, (int64_t chunks, int64_t dim = 0), (chunks, dim), composite)                         \
  OP(FORM_METHOD, TensorVector, unsafe_chunk, chunks, (int64_t chunks, int64_t dim = 0), (chunks, dim),                \
     chunk(input, chunks, dim))                                                                                        \
  OP(FORM_METHOD, TensorVector, unsafe_split, size, (int64_t split_size, int64_t dim = 0), (split_size, dim),          \
     split(input, split_size, dim))                                                                                    \
  OP(FORM_METHOD, TensorVector, unsafe_split_with_sizes, sizes, (IntTuple split_sizes, int64_t dim = 0),               \
     (split_sizes, dim), split_with_sizes(input, split_sizes, dim))                                                    \
  OP(METHOD, Tensor, sum_to_size, (IntTuple size), (size), composite, tensor_only, gives(Gives::sum))                  \
  OP(FORM_METHOD, Tensor, swapaxes, axes, (int64_t axis0, int64_t axis1), (axis0, axis1),                              \
     transpose(input, axis0, axis1))                                                                                   \
  OP(METHOD, Tensor, view_as_real, (), (), no_method, accepts(kComplexes), gives(Gives::real))                         \
  OP(METHOD, Tensor, view_as_complex, (), (), no_method, accepts(kWideFloats), gives(Gives::complex))                  \
  OP(METHOD, Tensor, real, (), (), composite, no_method, gives(Gives::real))                                           \
  OP(METHOD, Tensor, imag, (), (), composite, no_method, accepts(kComplexes), gives(Gives::real))                      \
  OP(METHOD, Tensor, unsqueeze_, (int64_t dim), (dim), composite, tensor_only)                                         \
  OP(METHOD, Tensor, _squeeze_, (const MaybeDims& dim = {}), (dim), composite, hidden)                                 \
  OP(FORM_METHOD, Tensor, squeeze_, all, (), (), _squeeze_(input, {}), tensor_only)                                    \
  OP(FORM_METHOD, Tensor, squeeze_, dim, (int64_t dim), (dim), _squeeze_(input, dim), tensor_only)                     \
  OP(FORM_METHOD, Tensor, squeeze_, dims, (IntTuple dim), (dim), _squeeze_(input, MaybeDims(IntSpan(dim))),            \
     tensor_only)                                                                                                      \
  OP(METHOD, Tensor, transpose_, (int64_t dim0, int64_t dim1), (dim0, dim1), composite, tensor_only)                   \
  OP(FORM_METHOD, Tensor, swapaxes_, axes, (int64_t axis0, int64_t axis1), (axis0, axis1),                             \
     transpose_(input, axis0, axis1), tensor_only)                                                                     \
  OP(METHOD, Tensor, t_, (), (), composite, tensor_only)                                                               \
  OP(METHOD, Tensor, as_strided_, (IntTuple size, IntTuple stride, MaybeInt storage_offset = {}),                      \
     (size, stride, storage_offset), composite)                                                                        \
  OP(METHOD, Tensor, resize_, (IntTuple size), (size), composite, tensor_only, no_gradient, memory_format)             \
  OP(METHOD, Tensor, resize_as_, (const Tensor& the_template), (the_template), composite, no_gradient, any_device,     \
     memory_format)                                                                                                    \
  OP(ALIAS, swapdims_, transpose_)                                                                                     \
  OP(ALIAS, swapdims, transpose)
