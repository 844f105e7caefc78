// Checks of the operands of reductions, the same on every device.
#pragma once
#include <vesta/core/ops/reduce.h>

namespace vesta {

/// Works out the geometry of an extremum. Error: a complex dtype, nothing to reduce.
VESTA_API ReduceShape extremum_shape(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op);
/// Works out the geometry of a search for extrema along one dimension. Error: a complex dtype, nothing to search.
VESTA_API ReduceShape place_shape(const Tensor& input, int64_t dim, bool keepdim, const char* op);

/// Returns any or all over an empty list of dimensions: each element as a bool (uint8 for uint8), as PyTorch does.
VESTA_API Tensor none_reduced(const Tensor& input);

/// The dtypes of a sum, mean or product: the input is first converted to `input`, the result is `result`.
struct SumTypes {
  DType input, result;
};
/// Determines a sum's or product's dtypes: integers and bool give int64. A wider requested dtype is also the dtype of
/// the computation.
VESTA_API SumTypes sum_types(DType input, MaybeDType dtype);
/// Determines a mean's dtypes. Error(type): the result would be an integer.
VESTA_API SumTypes mean_types(DType input, MaybeDType dtype);

}  // namespace vesta
