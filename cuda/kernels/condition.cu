#include <vesta/cuda/kernels/condition.h>

#include <vesta/cuda/kernels/device.cuh>

namespace vesta::cuda {
namespace {

VESTA_KERNEL void condition_kernel(const bool* flag, const char* message, Fault* fault) {
  if (*flag) report(fault, FaultKind::condition, message, 0, 0);
}

}  // namespace

void run_condition(const bool* flag, const char* message, Fault* fault, StreamHandle stream) {
  launch_independent("condition", condition_kernel, linear_shape(1, 1, stream), flag, message, fault);
}

}  // namespace vesta::cuda
