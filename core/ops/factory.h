// Factories: new tensors, by rules of dtype and shape that all devices share.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/factory.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_FACTORY)

/// Returns the dtype that a factory infers from a number: bool, int64, the default floating type or its complex type.
VESTA_API DType dtype_of_value(Scalar value);

/// A checked call of arange: dtype and number of elements.
struct ArangePlan {
  DType dtype;
  int64_t length;
};
/// Checks the bounds of arange (a finite, nonzero step of the right sign) and counts its elements.
VESTA_API ArangePlan arange_plan(Scalar start, Scalar end, Scalar step, MaybeDType dtype);
/// Checks linspace's number of steps and determines its dtype.
VESTA_API DType linspace_dtype(Scalar start, Scalar end, int64_t steps, MaybeDType dtype);

}  // namespace vesta
