// A call of the runtime interface (runtime.h) that only device.cpp makes: the current device is shared with the
// process's other libraries.
#pragma once
#include <vesta/cuda/runtime.h>

namespace vesta::cuda::rt {

/// Gets the device that is set for this thread, by us or another library. Costs no call of the driver.
Status get_device(int* device);

}  // namespace vesta::cuda::rt
