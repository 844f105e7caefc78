// Faults: errors that a kernel found in its operands (an index out of range), raised when the host next waits.
#pragma once
#include <exception>

#include <vesta/core/base/error.h>

namespace vesta::cuda {

struct Fault;

/// Returns the record in which the kernels of a device report. It lives as long as the process.
Fault* fault_of(int device);
/// Raises what a kernel of the device reported, if any, and clears it: the device stays usable. Called wherever the
/// host has waited for the device.
void raise_fault(int device);

/// Records that queued work of a device has failed in a way that the host found (an aborted communicator): the next
/// wait for the device raises `error` instead of giving values that were never written. `who` is for retract_failure.
void post_failure(int device, const void* who, std::exception_ptr error);
/// Removes what `who` posted: the user has received the error.
void retract_failure(const void* who);

}  // namespace vesta::cuda
