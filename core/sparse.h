// Sparse tensors in coordinate format (COO): the elements that are stored, and their positions.
//
// Of a tensor of sizes [n_1, ..., n_s, d_1, ...] the first s dimensions are sparse: column k of `indices`, an int64
// tensor [s, nnz], says where values[k], of sizes [d_1, ...], stands. Indices may occur more than once, in any order;
// their values add up. `coalesced`: every index occurs once, in lexicographic order.
//
// A matrix may be compressed instead, by rows (CSR) or columns (CSC): then plain[compressed[i]] to
// plain[compressed[i + 1]] are the columns of the elements in row i, in order. Its `indices` are kept beside, so that
// what is written for coordinates holds for it too.
//
// A sparse tensor is a Tensor like any other, for the tape too. Its bit of Layer::sparse takes a call to the function
// that the op has for sparse operands (core/ops/sparse.cpp); an op without one refuses. So kernels never meet one.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

enum class SparseLayout : uint8_t { coo, csr, csc };

struct SparseParts : RefCounted {
  Tensor indices, values;
  bool coalesced = false;
  SparseLayout layout = SparseLayout::coo;
  Tensor compressed, plain;  // of a compressed matrix: int32 or int64
  static void destroy(SparseParts* p) noexcept { delete p; }
};

/// Makes a sparse tensor; nothing is checked or copied.
VESTA_API Tensor make_sparse(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);

/// Makes a compressed matrix; nothing is checked or copied. `indices`: the same places as coordinates.
VESTA_API Tensor make_compressed(SparseLayout layout, const Tensor& compressed, const Tensor& plain,
                                 const Tensor& indices, const Tensor& values, IntSpan sizes);
/// Makes a sparse tensor of the same layout and places with other values.
VESTA_API Tensor make_sparse_like(const SparseParts& p, const Tensor& values, IntSpan sizes);

/// Returns the parts of a sparse tensor. Error(runtime) for a dense one.
VESTA_API const SparseParts& sparse_parts(const Tensor& t, const char* op);

/// Replaces the elements of a sparse tensor in place by those of another one of its layout, and counts the write.
VESTA_API void set_sparse_parts(const Tensor& t, const SparseParts& parts, const char* op);

/// Returns the number of sparse dimensions, or of stored elements.
inline int64_t sparse_dims(const SparseParts& p) { return p.indices.size(0); }
inline int64_t nnz(const SparseParts& p) { return p.indices.size(1); }

/// Raises for a sparse tensor: what reads memory calls it where no op stands before it.
inline void check_dense(const Tensor& t, const char* op) {
  VESTA_CHECK(!t.is_sparse(), not_implemented, op,
              ": expected a dense tensor, got a sparse one. Convert it with .to_dense().");
}

}  // namespace vesta
