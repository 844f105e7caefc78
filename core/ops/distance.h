// Distances, products of vectors, covariances.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/distance.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_DISTANCE)

/// Checks linalg.cross's operands; returns the wrapped dimension. Error(runtime): another number of dimensions, or no 3
/// elements along `dim`. Error(not_implemented): two bools.
VESTA_API int64_t check_cross(const Tensor& input, const Tensor& other, int64_t dim);

/// Checks the operands of _distances; returns the shape of its result.
VESTA_API Dims check_distances(const Tensor& x1, const Tensor& x2, double p);
/// Does the same for its gradient; `grad` and `distances` have the shape of the result.
VESTA_API void check_distances_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                                        const Tensor& distances);

}  // namespace vesta
