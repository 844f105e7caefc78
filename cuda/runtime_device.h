// A call of the waist (runtime.h) that device.cpp alone makes: which device is current belongs to the process's other
// libraries as well as to us.
#pragma once
#include <vesta/cuda/runtime.h>

namespace vesta::cuda::rt {

/// Asks which device is set for this thread, by whomever. Costs no call of the driver.
Status get_device(int* device);

}  // namespace vesta::cuda::rt
