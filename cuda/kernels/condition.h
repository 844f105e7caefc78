// Checks of values that the host does not wait for.
#pragma once
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Reports `message`, a literal of the host's, to `fault` if *flag is set.
void run_condition(const bool* flag, const char* message, Fault* fault, StreamHandle stream);

}  // namespace vesta::cuda
