// Distances, products of vectors, covariances.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/distance.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_DISTANCE)

/// Checks linalg.cross's operands; returns the wrapped dimension. Error(runtime): another number of dimensions, or no 3
/// elements along `dim`. Error(not_implemented): two bools.
VESTA_API int64_t check_cross(const Tensor& input, const Tensor& other, int64_t dim);

}  // namespace vesta
