// Reductions to one number whose elements are computed on the way, for the ops of other files.
#pragma once
#include <vesta/core/tensor.h>
#include <vesta/cuda/kernels/reduce.h>

namespace vesta::cuda {

/// Queues the stages of a reduction of all elements of `x`, dense and at least one, to what `s` names as outputs.
void reduce_whole(ReduceStage s, const Tensor& x);

}  // namespace vesta::cuda
