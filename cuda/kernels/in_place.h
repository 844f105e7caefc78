// The dtypes that a device adds to memory by one instruction.
#pragma once
#include <vesta/core/dtype_set.h>

namespace vesta::cuda {

/// The dtypes of sums that threads may add to in any order. 16-bit floats would be rounded after each addition.
inline constexpr DTypeSet kAddedInPlace = set_of(DType::float32) | set_of(DType::float64);

}  // namespace vesta::cuda
