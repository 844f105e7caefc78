// The op list, sparse tensors: between dense tensors and coordinates. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SPARSE(OP)                                                                                           \
  OP(FUNCTION, Tensor, _sparse_coo,                                                                                    \
     (const Tensor& indices, const Tensor& values, IntList size, bool is_coalesced),                                   \
     (indices, values, size, is_coalesced), hidden)                                                                    \
  OP(METHOD, Tensor, _sparse_values, (), (), hidden)                                                                   \
  OP(FUNCTION, Tensor, _sparse_compressed,                                                                             \
     (const Tensor& compressed, const Tensor& plain, const Tensor& values, IntList size, bool by_rows),                \
     (compressed, plain, values, size, by_rows), hidden)                                                               \
  OP(METHOD, Tensor, _compress, (bool by_rows), (by_rows), composite, hidden)                                          \
  OP(METHOD, Tensor, _compressed_part, (bool by_rows, bool plain), (by_rows, plain), hidden, no_gradient)              \
  OP(FUNCTION, Tensor, _csr_product,                                                                                   \
     (const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense), (crow, col, values, dense),   \
     composite, hidden, no_gradient)                                                                                   \
  OP(FUNCTION, Tensor, _sparse_numbers, (const Tensor& indices, IntTuple size), (indices, size), composite, hidden,    \
     no_gradient, gives(Gives::int64))                                                                                 \
  OP(FUNCTION, Tensor, _sparse_places, (const Tensor& numbers, IntTuple size), (numbers, size), composite, hidden,     \
     no_gradient, gives(Gives::int64))                                                                                 \
  OP(FUNCTION, TensorTriple, _sparse_order, (const Tensor& indices, IntTuple size), (indices, size), composite,        \
     hidden, no_gradient, gives(Gives::int64, Gives::int64, Gives::int64))                                             \
  OP(FUNCTION, Tensor, _sum_runs, (const Tensor& values, const Tensor& order, const Tensor& starts),                   \
     (values, order, starts), composite, hidden)                                                                       \
  OP(METHOD, Tensor, _indices, (), (), tensor_only, no_gradient)                                                       \
  OP(METHOD, Tensor, _values, (), (), tensor_only, no_gradient)                                                        \
  OP(METHOD, Tensor, _unique_indices, (), (), composite, hidden, no_gradient)                                          \
  OP(METHOD, Tensor, _unique_values, (), (), composite, hidden)                                                        \
  OP(PYTHON_FORM, Tensor, indices, method, (const Tensor& input), (input), _unique_indices(input), tensor_only,        \
     no_gradient)                                                                                                      \
  OP(PYTHON_FORM, Tensor, values, method, (const Tensor& input), (input), _unique_values(input), tensor_only)          \
  OP(PYTHON_FORM, Tensor, crow_indices, method, (const Tensor& input), (input), _compressed_part(input, true, false),  \
     tensor_only, no_gradient)                                                                                         \
  OP(PYTHON_FORM, Tensor, col_indices, method, (const Tensor& input), (input), _compressed_part(input, true, true),    \
     tensor_only, no_gradient)                                                                                         \
  OP(PYTHON_FORM, Tensor, ccol_indices, method, (const Tensor& input), (input), _compressed_part(input, false, false), \
     tensor_only, no_gradient)                                                                                         \
  OP(PYTHON_FORM, Tensor, row_indices, method, (const Tensor& input), (input), _compressed_part(input, false, true),   \
     tensor_only, no_gradient)                                                                                         \
  OP(METHOD, Tensor, coalesce, (), (), composite, tensor_only)                                                         \
  OP(METHOD, Tensor, to_dense, (MaybeDType dtype = {}, Kw<MaybeBool> masked_grad = {}), (dtype, masked_grad),          \
     composite, tensor_only)                                                                                           \
  OP(METHOD, Tensor, to_sparse, (MaybeInt sparse_dim = {}), (sparse_dim), composite, tensor_only)                      \
  OP(METHOD, Tensor, sparse_mask, (const Tensor& mask), (mask), composite, tensor_only)                                \
  OP(METHOD, Tensor, _sparse_sum, (IntList dim), (dim), composite, hidden)
