// Faults: what a kernel found wrong with its operands (an index out of range), raised when the host next waits.
#pragma once
#include <vesta/core/base/error.h>

namespace vesta::cuda {

struct Fault;

/// Returns where the kernels of a device report. Lives as long as the process.
Fault* fault_of(int device);
/// Raises what a kernel of the device reported, if it did, and forgets it: the device stays usable. Called wherever the
/// host has waited for the device.
void raise_fault(int device);

}  // namespace vesta::cuda
