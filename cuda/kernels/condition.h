// A check of values for which the host does not wait.
#pragma once
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Queues a report of `message`, a literal of the host, to `fault` if *flag is set.
void run_condition(const bool* flag, const char* message, Fault* fault, StreamHandle stream);

}  // namespace vesta::cuda
