// Reductions over any set of dimensions: sum, mean, extrema, any, all, and the indices of extrema.
//
// Note [Trees of reductions]
// The order in which elements are combined depends on shape and strides only: a row is cut into pieces of fixed length,
// the pieces are reduced in vectors, and the partial results are combined like the carries of a binary counter (a
// balanced tree). Threads share the pieces, never the order. Rejected: a piece per thread (results would change with
// the number of threads) and a plain running sum (its error grows with n instead of log n).
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/reduce.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_REDUCE)

/// The geometry of a reduction: which dimensions go, and the result's shape.
struct ReduceShape {
  uint64_t mask;  // bit d: dimension d is reduced
  int64_t count;  // elements combined into one result
  Dims sizes;  // of the result (1 for a reduced dimension where keepdim)
};
/// Checks `dim` and works out the geometry.
VESTA_API ReduceShape reduce_shape(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op);
/// Returns the dtype in which an element's bin, (x - min) * bins / (max - min), is computed: float32 for float32 and
/// less, as PyTorch does, unless its numbers are too large for that; else float64.
VESTA_API DType bins_dtype(DType input, int64_t bins, double min, double max);

}  // namespace vesta
