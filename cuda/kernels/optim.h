// Fused optimizer steps: one launch for many tensors of a dtype.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/optim_step.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// One parameter with its gradient and state, all in the same memory order.
struct OptimEntry {
  char* p = nullptr;
  const char* g = nullptr;
  char* states[kMaxStates] = {};  // null: not used
  double counted[kMaxCounted] = {};  // the step's Counted
  const double* counted_here = nullptr;  // the same on the device, where the number of steps lies there
  int64_t numel = 0;
  uint32_t first_block = 0;  // set by the launch
};
static_assert(sizeof(OptimEntry) == 88);
inline constexpr int kOptimEntries = 352;  // of one launch: 31 KB of a kernel's arguments

/// Queues a step over n entries, n <= kOptimEntries; `numbers` is the step's struct.
void run_step(StepKind kind, const OptimEntry* entries, int n, DType dtype, const void* numbers, StreamHandle stream);

/// A count of steps on the device: *steps[i] += 1, and the numbers that follow.
struct StepCounts {
  float* steps[kOptimEntries];
  double* counted;  // kMaxCounted per entry
  int n = 0;
};
/// Queues the count; only for steps without scalars.
void run_counts(StepKind kind, const StepCounts& c, const void* numbers, StreamHandle stream);

}  // namespace vesta::cuda
