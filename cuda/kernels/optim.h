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
  char* m = nullptr;    // momentum buffer (may be null), or Adam's mean
  char* v = nullptr;    // Adam's or RMSprop's mean square
  char* top = nullptr;  // Adam's maximum of it, with amsgrad; RMSprop's mean, when centered
  const double* corrections = nullptr;  // on the device: lr / bias1 and bias2_sqrt; null: the two below
  double step_size = 0, root = 0;
  int64_t numel = 0;
  uint32_t first_block = 0;  // set by the launch
};
inline constexpr int kOptimEntries = 368;  // of one launch: 30 KB of a kernel's arguments

/// Queues a step over n entries, n <= kOptimEntries.
void run_sgd(const OptimEntry* entries, int n, DType dtype, const SgdStep& step, StreamHandle stream);
void run_adam(const OptimEntry* entries, int n, DType dtype, const AdamStep& step, StreamHandle stream);
void run_rmsprop(const OptimEntry* entries, int n, DType dtype, const RmspropStep& step, StreamHandle stream);

/// A count of steps on the device: *steps[i] += 1, and the corrections that follow.
struct AdamCounts {
  float* steps[kOptimEntries];
  double* corrections;  // two per entry
  int n = 0;
  double lr, beta1, beta2;
};
void run_adam_counts(const AdamCounts& c, StreamHandle stream);

}  // namespace vesta::cuda
