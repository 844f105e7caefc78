// A count of free slots in shared memory that processes take and return: it bounds a queue.
#pragma once
#include <cstdint>

#include <vesta/multiprocessing/deadline.h>

namespace vesta::shared {

/// Takes a slot of `free` (an aligned number in shared memory), waiting until there is one; returns false at the
/// deadline. A process that dies between taking and giving keeps its slot; it blocks no other process in any other way.
VESTA_API bool take_slot(int32_t* free, Clock::time_point deadline);
/// Returns a slot and wakes one waiting process.
VESTA_API void give_slot(int32_t* free);

}  // namespace vesta::shared
