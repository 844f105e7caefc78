// The emulated device's own calls, for launch() and for tests.
#pragma once
#include <functional>

#include <vesta/cuda/emulation/threads.h>

namespace vesta::cuda::emulation {

/// Queues `work` on a stream, as a kernel called `name`.
void enqueue(StreamHandle stream, const char* name, std::function<void()> work);

/// Queues work that needs other processes: `poll` is called until it returns true. The rest of the device goes on.
void enqueue_polled(StreamHandle stream, const char* name, std::function<bool()> poll);
/// Calls it while nobody waits.
void progress();

/// Says when queued work runs. `eager`: as soon as it may. `lazy`: only when the host waits for it, and then nothing
/// that the wait does not imply. `random`: any runnable stream's next task, at any moment. What is not ordered by
/// events must not matter, so results are the same under all three.
enum class Schedule : uint8_t { eager, lazy, random };
void set_schedule(Schedule schedule, uint64_t seed);

/// Makes the k-th allocation from now fail (1: the next); 0: none.
void fail_allocation(uint64_t k);

}  // namespace vesta::cuda::emulation
