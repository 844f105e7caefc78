// The emulated device's own calls, for launch() and for tests.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include <vesta/cuda/emulation/threads.h>

namespace vesta::cuda::emulation {

/// Queues `work` on a stream, as a kernel called `name`.
void enqueue(StreamHandle stream, const char* name, std::function<void()> work);

/// Queues work that needs other processes: `poll` is called until it returns true. The rest of the device continues.
void enqueue_polled(StreamHandle stream, const char* name, std::function<bool()> poll);
/// Runs such work while no thread waits.
void progress();

/// The time at which queued work runs. `eager`: as soon as it may. `lazy`: only when the host waits for it, and then
/// only what the wait requires. `random`: any runnable stream's next task, at any moment. Order that events do not fix
/// must not matter, so results are the same under all three.
enum class Schedule : uint8_t { eager, lazy, random };
void set_schedule(Schedule schedule, uint64_t seed);

/// Callbacks for every task, used by counting/: its beginning and its end, and the bytes that copies touch; null if
/// unused.
struct Watch {
  void (*begin)(const char* name) = nullptr;
  void (*end)() = nullptr;
  void (*touch)(const void* p, size_t nbytes, bool written) = nullptr;
};
void set_watch(const Watch& watch);
/// Returns the addresses of all devices' memory.
std::vector<std::span<char>> device_memory();

/// Makes the k-th allocation from now fail (1: the next); 0: none.
void fail_allocation(uint64_t k);

}  // namespace vesta::cuda::emulation
