// Waits of the host for a device that may never come back.
//
// A wait inside the CUDA runtime cannot be interrupted. Where nothing can hang, the host waits there. Once a process
// has communicators, whose kernels wait for other processes, a thread of its own waits in the runtime, and the caller
// waits for that thread or for the news that the device is lost; that costs some 20 microseconds.
#pragma once
#include <exception>
#include <functional>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Returns the status of `wait`, which waits for work of `device` in the runtime. Raises what lose_device() was given
/// if the device is lost before that ends; `wait` is then left behind, and owns all that it uses.
rt::Status wait_for_device(int device, std::function<rt::Status()> wait);
/// Returns whether expect_loss() was called.
bool loss_is_expected();
/// Makes waits from now on ready for the loss of a device.
void expect_loss();
/// Declares that work of a device will never end: all waits for it, also those under way, raise `error`.
void lose_device(int device, std::exception_ptr error);

}  // namespace vesta::cuda
