// Sparse tensors: what makes them, takes them apart, and the functions that ops have for sparse operands.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/sparse.h>
#include <vesta/core/sparse.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SPARSE)

/// Checks the places [s, nnz] of a tensor whose s sparse dimensions have these sizes. Error(value).
VESTA_API void check_places(const Tensor& indices, IntSpan sizes, const char* op);

/// Checks the shapes and dtypes of _sum_runs. Error(value).
VESTA_API void check_runs(const Tensor& values, const Tensor& order, const Tensor& starts);

/// Returns the elements of dense `t` at `indices` [s, nnz] of its first s dimensions: [nnz, *].
VESTA_API Tensor elements_at(const Tensor& t, const Tensor& indices);

/// Returns a sparse tensor of the layout and places of another, with a gradient for its values.
VESTA_API Tensor sparse_like(const SparseParts& p, const Tensor& values, IntSpan sizes);
/// Returns a sparse tensor of the layout of another, without elements.
VESTA_API Tensor with_no_elements(const SparseParts& p, DType dtype, Device device, IntSpan sizes);

/// Returns 1 for the first of the stored elements at each index and 0 for its repetitions, to be multiplied by values.
/// A gradient is a function of the index: a sparse gradient stores it once.
VESTA_API Tensor first_of_place(const SparseParts& p, IntSpan sizes, DType dtype);

/// Returns linear where input or weight is sparse: a product, which is dense unless both are, and the bias.
VESTA_API Tensor linear_sparse(const Tensor& input, const Tensor& weight, MaybeTensor bias);

}  // namespace vesta
