// Reductions over any set of dimensions: sum, mean, extrema, any, all, and the places of extrema.
//
// Note [Trees of reductions]
// The order in which elements are combined depends on shape and strides only: a row is cut into pieces of fixed length,
// the pieces are reduced in vectors, and the partial results are combined like the carries of a binary counter (a
// balanced tree). Threads share the pieces, never the order. Rejected: a piece per thread (results would change with
// the number of threads) and a plain running sum (its error grows with n instead of log n).
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

namespace doc {
inline constexpr char sum[] =
    "sum(input, dim=None, keepdim=False, *, dtype=None): the sum over the given dimensions (all without dim). Integers "
    "and bool sum in int64, 16-bit floats in float32. Error: a dimension out of range or repeated.";
inline constexpr char mean[] =
    "mean(input, dim=None, keepdim=False, *, dtype=None): sum / count over the given dimensions. Error: an integer "
    "input.";
inline constexpr char amax[] =
    "amax(input, dim=None, keepdim=False): the largest value; NaN wins. Error: nothing to reduce.";
inline constexpr char amin[] =
    "amin(input, dim=None, keepdim=False): the smallest value; NaN wins. Error: nothing to reduce.";
inline constexpr char any[] = "any(input, dim=None, keepdim=False): whether any element is non-zero; False for none.";
inline constexpr char all[] = "all(input, dim=None, keepdim=False): whether all elements are non-zero; True for none.";
inline constexpr char max_dim[] =
    "max_dim(input, dim, keepdim=False): (values, indices) of the largest along dim; the first of equals; NaN wins.";
inline constexpr char min_dim[] =
    "min_dim(input, dim, keepdim=False): (values, indices) of the smallest along dim; the first of equals; NaN wins.";
inline constexpr char argmax[] =
    "argmax(input, dim=None, keepdim=False): index (int64) of the largest along dim, or in the flattened input.";
inline constexpr char argmin[] =
    "argmin(input, dim=None, keepdim=False): index (int64) of the smallest along dim, or in the flattened input.";
}  // namespace doc

/// Is the geometry of a reduction: which dimensions go, and the result's shape.
struct ReduceShape {
  uint64_t mask;  // bit d: dimension d is reduced
  int64_t count;  // elements combined into one result
  Dims sizes;  // of the result (1 for a reduced dimension where keepdim)
};
/// Checks `dim` and works out the geometry.
VESTA_API ReduceShape reduce_shape(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op);

}  // namespace vesta
