// A number of free slots in shared memory that processes take and give back: what bounds a queue.
#pragma once
#include <cstdint>

#include <vesta/multiprocessing/deadline.h>

namespace vesta::shared {

/// Takes a slot of `free` (an aligned number in shared memory), waiting until there is one; false at the deadline. Who
/// dies between taking and giving keeps its slot, nobody is held up otherwise.
VESTA_API bool take_slot(int32_t* free, Clock::time_point deadline);
/// Gives a slot back and wakes one that waits.
VESTA_API void give_slot(int32_t* free);

}  // namespace vesta::shared
