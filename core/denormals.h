// The treatment of denormal numbers, those below about 1e-38 in float32.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// Makes the calling thread, and threads that compute for it, flush denormal numbers to zero, or keep them (the
/// default). Returns whether the processor can. (core/cpu/parallel.cpp)
VESTA_API bool set_flush_denormal(bool on);

}  // namespace vesta
