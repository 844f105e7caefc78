// Counts the bytes that every launch moves. The compiler puts a call at each load and each store of the kernels
// (-fsanitize=kernel-address with outlined checks), and these calls end here: nothing is checked, the access is noted.
//
// Note [What counts as moved]
// A GPU moves sectors of 32 bytes. A sector counts once per launch and direction, as if the caches kept everything
// until the launch ends: these are the bytes of memory. It counts once per block besides: these are the bytes that
// blocks ask of the L2 cache, which is what memory sees where an operand is larger than that. Shared memory, registers
// and local arrays lie outside of the devices' memory and do not count.
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/core/base/macros.h>
#include <vesta/cuda/emulation/device.h>

namespace vesta::cuda::emulation {
namespace {

constexpr unsigned kSectorBits = 5;

/// What one launch, copy or call of a library has moved. Python reads it by ctypes (benchmarks/launches.py).
struct Moved {
  const char* name = "";
  int64_t time = 0;                          // when it ran, in nanoseconds of the monotonic clock
  uint64_t read = 0, written = 0;            // bytes of memory
  uint64_t block_read = 0, block_written = 0;  // bytes that blocks asked for
};

/// When a sector was touched last, in each direction: the number of the launch and of the block.
struct Touched {
  uint32_t launch[2], block[2];
};

/// The sectors of a device's memory.
struct Memory {
  uintptr_t begin = 0, end = 0;
  Touched* sectors = nullptr;
};

/// The first access of a launch to a sector in one direction, in the order of the accesses.
struct Access {
  uintptr_t sector;  // of all addresses
  uint32_t launch;   // its record
  bool written;
};

std::vector<Memory> memories;
std::vector<Moved> moved;
std::vector<Access> accesses;
Moved now;
bool open = false;
uint32_t launch = 0, block = 0;
Index3 last_block;

void note(uintptr_t address, size_t nbytes, bool written) {
  if (!open || nbytes == 0) return;
  for (const Memory& m : memories) {
    if (address < m.begin || address >= m.end) continue;
    const Index3 b = position.block;
    if (b.x != last_block.x || b.y != last_block.y || b.z != last_block.z) last_block = b, ++block;
    const size_t first = (address - m.begin) >> kSectorBits, last = (address + nbytes - 1 - m.begin) >> kSectorBits;
    for (size_t i = first; i <= last; ++i) {
      Touched& t = m.sectors[i];
      if (t.block[written] == block) continue;
      t.block[written] = block;
      (written ? now.block_written : now.block_read) += 1 << kSectorBits;
      if (t.launch[written] == launch) continue;
      t.launch[written] = launch;
      (written ? now.written : now.read) += 1 << kSectorBits;
      accesses.push_back({(m.begin >> kSectorBits) + i, uint32_t(moved.size()), written});
    }
    return;
  }
}

void begin(const char* name) {
  now = Moved{name};
  now.time = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  ++launch, ++block;
  open = true;
}
void end() {
  open = false;
  moved.push_back(now);
}
void touch(const void* p, size_t nbytes, bool written) { note(reinterpret_cast<uintptr_t>(p), nbytes, written); }

}  // namespace
}  // namespace vesta::cuda::emulation

using namespace vesta::cuda::emulation;

/// Begins to count.
extern "C" VESTA_API void vesta_counting_start() {
  if (memories.empty()) {
    for (const auto& bytes : device_memory()) {
      const size_t size = (bytes.size() >> kSectorBits) * sizeof(Touched);
      void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      VESTA_CHECK(p != MAP_FAILED, memory, "counting: no addresses for the sectors of a device.");
      const uintptr_t at = reinterpret_cast<uintptr_t>(bytes.data());
      memories.push_back({at, at + bytes.size(), static_cast<Touched*>(p)});
    }
  }
  moved.clear(), accesses.clear();
  set_watch({begin, end, touch});
}
/// Ends counting; returns how many records there are.
extern "C" VESTA_API size_t vesta_counting_stop() {
  set_watch({});
  return moved.size();
}
/// Returns how many records there are so far.
extern "C" VESTA_API size_t vesta_counting_size() { return moved.size(); }
/// Adds to `needed` what each call must move, whose launches `calls` tells (the number of the call of each record): it
/// reads once what others have written, and writes once what others read. What it keeps to itself, or nobody reads,
/// does not count.
extern "C" VESTA_API void vesta_counting_needed(const uint32_t* calls, uint64_t* needed) {
  constexpr uint64_t kBytes = 1 << kSectorBits;
  constexpr uint32_t kNone = ~0u;
  struct Sector {
    uint32_t writer = kNone, reader = kNone;  // the last ones
    bool counted = false;  // what the writer wrote
  };
  std::unordered_map<uintptr_t, Sector> sectors;
  for (const Access& a : accesses) {
    Sector& s = sectors[a.sector];
    const uint32_t call = calls[a.launch];
    if (a.written) {
      s = {call, kNone, false};
    } else if (call != s.writer && call != s.reader) {
      needed[call] += kBytes, s.reader = call;
      if (s.writer != kNone && !std::exchange(s.counted, true)) needed[s.writer] += kBytes;
    }
  }
}
/// Returns the records, which the next start drops.
extern "C" VESTA_API const Moved* vesta_counting_records() { return moved.data(); }

// What the compiler calls. The names and the meanings are those of AddressSanitizer's interface for kernels.
#define VESTA_NOTE(direction, size, written) \
  VESTA_API void __asan_##direction##size##_noabort(uintptr_t p) { note(p, size, written); }
#define VESTA_NOTE_ALL(direction, written)                                       \
  VESTA_NOTE(direction, 1, written)                                              \
  VESTA_NOTE(direction, 2, written)                                              \
  VESTA_NOTE(direction, 4, written)                                              \
  VESTA_NOTE(direction, 8, written)                                              \
  VESTA_NOTE(direction, 16, written)                                             \
  VESTA_API void __asan_##direction##N_noabort(uintptr_t p, size_t n) { note(p, n, written); }
extern "C" {
VESTA_NOTE_ALL(load, false)
VESTA_NOTE_ALL(store, true)
VESTA_API void __asan_handle_no_return() {}
}
