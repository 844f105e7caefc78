// Faults: what a kernel found wrong with its operands (an index out of range), raised when the host next waits.
#pragma once
#include <exception>

#include <vesta/core/base/error.h>

namespace vesta::cuda {

struct Fault;

/// Returns where the kernels of a device report. Lives as long as the process.
Fault* fault_of(int device);
/// Raises what a kernel of the device reported, if it did, and forgets it: the device stays usable. Called wherever the
/// host has waited for the device.
void raise_fault(int device);

/// Notes that what is queued on a device has failed in a way that the host found (a communicator that was aborted): the
/// next who waits for the device gets `error` instead of values that nobody wrote. `who` is for retract_failure.
void post_failure(int device, const void* who, std::exception_ptr error);
/// Forgets what `who` posted: the user has been told.
void retract_failure(const void* who);

}  // namespace vesta::cuda
