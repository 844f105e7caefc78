// Sparse tensors: what makes them, takes them apart, and the functions that ops have for sparse operands.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/sparse.h>
#include <vesta/core/sparse.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SPARSE)

/// Returns the elements of dense `t` at `indices` [s, nnz] of its first s dimensions: [nnz, *].
VESTA_API Tensor elements_at(const Tensor& t, const Tensor& indices);

/// Returns 1 for the first of the stored elements at each index and 0 for its repetitions, to be multiplied by values.
/// A gradient is a function of the index: a sparse gradient stores it once.
VESTA_API Tensor first_of_place(const SparseParts& p, IntSpan sizes, DType dtype);

/// Returns linear where input or weight is sparse: a product, which is dense unless both are, and the bias.
VESTA_API Tensor linear_sparse(const Tensor& input, const Tensor& weight, MaybeTensor bias);

}  // namespace vesta
