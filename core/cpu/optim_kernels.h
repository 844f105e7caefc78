// The interface between the drivers of optimizer steps and of gradient scaling and their kernels, per dtype.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/core/ops/list_factor.h>
#include <vesta/core/ops/optim_step.h>

namespace vesta::cpu {

/// The kernels that work on a run of n elements of an optimizer's tensors.
struct OptimKernels {
  /// One step. `at` are the runs of the parameter, its gradient and its states, null for a state that is not used;
  /// `numbers` is the step's struct, `counted` its Counted.
  using StepKernel = void (*)(char* const* at, int64_t n, const void* numbers, const void* counted);
  StepKernel steps[kNumSteps] = {};
  /// Computes g *= factor; returns whether every g was finite.
  bool (*unscale)(char* g, int64_t n, double factor) = nullptr;
  void (*scale)(char* x, int64_t n, double factor) = nullptr;  // x *= factor
  /// Returns the sum, or the greatest, of what a norm is made of.
  double (*norm_part)(const char* x, int64_t n, NormKind kind) = nullptr;
};

/// Returns the kernels of a floating dtype for the instruction set in use; Error(type) for any other dtype.
const OptimKernels& optim_kernels(DType d);

}  // namespace vesta::cpu
