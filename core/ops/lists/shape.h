// The op list, rearranging: what changes shape, order or number of elements by copying. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SHAPE(OP)                                                                                            \
  OP(METHOD, Tensor, repeat, (IntTuple repeats), (repeats), composite, tensor_only)                                    \
  OP(METHOD, Tensor, tile, (IntTuple dims), (dims), composite)                                                         \
  OP(METHOD_AS, Tensor, repeat_interleave, self_Tensor,                                                                \
     (const Tensor& repeats, MaybeInt dim = {}, Kw<MaybeInt> output_size = {}), (repeats, dim, output_size),           \
     composite)                                                                                                        \
  OP(FUNCTION_AS, Tensor, repeat_interleave, Tensor, (const Tensor& repeats, Kw<MaybeInt> output_size = {}),           \
     (repeats, output_size), composite, no_gradient)                                                                   \
  OP(METHOD_AS, Tensor, repeat_interleave, self_int,                                                                   \
     (int64_t repeats, MaybeInt dim = {}, Kw<MaybeInt> output_size = {}), (repeats, dim, output_size), composite)      \
  OP(METHOD, Tensor, roll, (IntList shifts, IntList dims = {}), (shifts, dims), composite)                             \
  OP(METHOD, Tensor, rot90, (int64_t k = 1, IntTuple dims = {0, 1}), (k, dims), composite)                             \
  OP(METHOD, Tensor, fliplr, (), (), composite)                                                                        \
  OP(METHOD, Tensor, flipud, (), (), composite)                                                                        \
  OP(METHOD_AS, Tensor, movedim, intlist, (IntTuple source, IntTuple destination), (source, destination), composite)   \
  OP(FORM_METHOD, Tensor, movedim, int, (int64_t source, int64_t destination), (source, destination),                  \
     movedim(input, IntList(source), IntList(destination)))                                                            \
  OP(METHOD, Tensor, unflatten, (int64_t dim, IntTuple sizes), (dim, sizes), composite)                                \
  OP(METHOD, Tensor, unfold, (int64_t dimension, int64_t size, int64_t step), (dimension, size, step), composite,      \
     tensor_only)                                                                                                      \
  OP(FORM_METHOD, Tensor, broadcast_to, size, (IntTuple size), (size), expand(input, size))                            \
  OP(METHOD, Tensor, adjoint, (), (), composite)                                                                       \
  OP(METHOD_INPLACE, Tensor, tril, (int64_t diagonal = 0), (diagonal), composite, exact_out, overwrites)               \
  OP(METHOD_INPLACE, Tensor, triu, (int64_t diagonal = 0), (diagonal), composite, exact_out, overwrites)               \
  OP(METHOD, Tensor, diag, (int64_t diagonal = 0), (diagonal), composite, exact_out)                                   \
  OP(METHOD, Tensor, diag_embed, (int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1), (offset, dim1, dim2),     \
     composite)                                                                                                        \
  OP(METHOD, Tensor, diagflat, (int64_t offset = 0), (offset), composite)                                              \
  OP(METHOD, Tensor, fill_diagonal_, (Scalar fill_value, bool wrap = false), (fill_value, wrap), composite,            \
     tensor_only)                                                                                                      \
  OP(METHOD, Tensor, trace, (), (), composite, gives(Gives::sum))                                                      \
  OP(FUNCTION, Tensor, tril_indices,                                                                                   \
     (int64_t row, int64_t col, int64_t offset = 0, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),               \
     (row, col, offset, dtype, device), composite, factory, gives(Gives::int64))                                       \
  OP(FUNCTION, Tensor, triu_indices,                                                                                   \
     (int64_t row, int64_t col, int64_t offset = 0, Kw<MaybeDType> dtype = {}, MaybeDevice device = {}),               \
     (row, col, offset, dtype, device), composite, factory, gives(Gives::int64))                                       \
  OP(METHOD_AS, TensorVector, tensor_split, sections, (int64_t sections, int64_t dim = 0), (sections, dim), composite) \
  OP(METHOD_AS, TensorVector, tensor_split, indices, (IntTuple indices, int64_t dim = 0), (indices, dim), composite)   \
  OP(METHOD_AS, TensorVector, tensor_split, tensor_indices_or_sections,                                                \
     (const Tensor& tensor_indices_or_sections, int64_t dim = 0), (tensor_indices_or_sections, dim), composite,        \
     any_device)                                                                                                       \
  OP(METHOD_AS, TensorVector, hsplit, int, (int64_t sections), (sections), composite)                                  \
  OP(METHOD_AS, TensorVector, hsplit, array, (IntTuple indices), (indices), composite)                                 \
  OP(METHOD_AS, TensorVector, vsplit, int, (int64_t sections), (sections), composite)                                  \
  OP(METHOD_AS, TensorVector, vsplit, array, (IntTuple indices), (indices), composite)                                 \
  OP(METHOD_AS, TensorVector, dsplit, int, (int64_t sections), (sections), composite)                                  \
  OP(METHOD_AS, TensorVector, dsplit, array, (IntTuple indices), (indices), composite)                                 \
  OP(FUNCTION, Tensor, hstack, (TensorList tensors), (tensors), composite, out)                                        \
  OP(FUNCTION, Tensor, vstack, (TensorList tensors), (tensors), composite, out)                                        \
  OP(FUNCTION, Tensor, dstack, (TensorList tensors), (tensors), composite, out)                                        \
  OP(FUNCTION, Tensor, column_stack, (TensorList tensors), (tensors), composite, out)                                  \
  OP(ALIAS, moveaxis, movedim)                                                                                         \
  OP(ALIAS, row_stack, vstack)
