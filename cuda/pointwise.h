// Runs pointwise plans on a device.
#pragma once
#include <vesta/core/ops/pointwise.h>
#include <vesta/cuda/kernels/pointwise.h>

namespace vesta::cuda {

/// Registers the kernels of every topic in the ops' records.
void register_pointwise();
/// Queues a plan (core/ops/pointwise.h) on the current stream of its device: operands of another dtype are converted
/// first; what a kernel cannot take at once (more than 2^31 elements, more than 8 dimensions) is split into parts.
void run_plan(const PointwisePlan& plan);

}  // namespace vesta::cuda
