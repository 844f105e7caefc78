// How the CPU takes denormal numbers, those below about 1e-38 in float32.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// Lets the calling thread, and threads that compute for it, take denormal numbers for 0, or keep them (as at first).
/// Returns whether the processor can. (core/cpu/parallel.cpp)
VESTA_API bool set_flush_denormal(bool on);

}  // namespace vesta
