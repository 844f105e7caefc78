// The reduction of a gradient to the shape and dtype of its input.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta::autograd {

/// Sums `t` to `sizes` (which broadcasts to its shape), converts it to `dtype` and takes the real part if `dtype` is
/// real.
VESTA_API Tensor reduce_to(const Tensor& t, IntSpan sizes, DType dtype);

}  // namespace vesta::autograd
