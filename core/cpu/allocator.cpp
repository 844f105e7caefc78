// Blocks are rounded up to one of eight sizes per power of two and kept in one list per size. A fresh 64 MiB buffer
// costs the kernel 15 times what a cached one costs (page faults), and huge pages take another factor of 6 off the
// first use.
//
// Note [How much is cached]
// Freed blocks stay as long as the cache holds no more than half of what was live at the peak, or 64 MiB. Beyond that
// the block being freed goes back to the system, so that a program whose memory need has fallen does not hold its old
// peak twice.
#include <vesta/core/cpu/allocator.h>

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace vesta::cpu {
namespace {

constexpr size_t kHuge = size_t(2) << 20;
constexpr size_t kHugeFrom = size_t(1) << 20;
constexpr size_t kMinCache = size_t(64) << 20;
constexpr int kClasses = 48 * 8;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCaching = false;  // a sanitizer must see every block freed
#else
constexpr bool kCaching = true;
#endif

struct Block {  // lies in the 64 bytes before the data
  size_t bytes;
  int size_class;
  Block* next;
};
constexpr size_t kHeader = 64;
static_assert(sizeof(Block) <= kHeader);

struct Cache {
  std::mutex mutex;
  Block* free[kClasses] = {};
  size_t live = 0, cached = 0, peak = 0;
};
Cache& cache() {
  static auto* c = new Cache;  // outlives every tensor
  return *c;
}

/// Rounds up to k * 2^e with 8 <= k < 16; returns the class.
int round_up(size_t& bytes) {
  bytes = std::max<size_t>(bytes, 512);
  int e = std::bit_width(bytes) - 4;
  size_t unit = size_t(1) << e;
  size_t k = (bytes + unit - 1) / unit;
  if (k == 16) k = 8, ++e, unit <<= 1;
  bytes = k * unit;
  return e * 8 + int(k - 8);
}

void* from_system(size_t bytes) {
  if (bytes < kHugeFrom) return std::aligned_alloc(64, (bytes + kHeader + 63) / 64 * 64);
  size_t whole = (bytes + kHeader + kHuge - 1) / kHuge * kHuge;
  void* p = std::aligned_alloc(kHuge, whole);
  if (p) madvise(p, whole, MADV_HUGEPAGE);
  return p;
}

void release_list(Block* b) {
  while (b) {
    Block* next = b->next;
    std::free(b);
    b = next;
  }
}

void give_back(void* context) {
  auto* b = static_cast<Block*>(context);
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  c.live -= b->bytes;
  if (kCaching && c.cached + b->bytes <= std::max(kMinCache, c.peak / 2)) {
    b->next = c.free[b->size_class];
    c.free[b->size_class] = b;
    c.cached += b->bytes;
    return;
  }
  lock.unlock();
  std::free(b);
}

}  // namespace

Memory allocate(size_t nbytes) {
  VESTA_CHECK(nbytes < size_t(1) << 47, memory, "out of memory: tried to allocate ", nbytes, " bytes on the CPU.");
  size_t bytes = nbytes;
  int size_class = round_up(bytes);
  Cache& c = cache();
  Block* b = nullptr;
  {
    std::lock_guard lock(c.mutex);
    if ((b = c.free[size_class])) {
      c.free[size_class] = b->next;
      c.cached -= b->bytes;
    }
    c.live += bytes;
    c.peak = std::max(c.peak, c.live);
  }
  if (!b) {
    b = static_cast<Block*>(from_system(bytes));
    if (!b) {
      release_cached_host_memory();
      b = static_cast<Block*>(from_system(bytes));
    }
    if (!b) {
      std::lock_guard lock(c.mutex);
      c.live -= bytes;
      fail(Cause::memory, "out of memory: tried to allocate ", nbytes, " bytes on the CPU; ", c.live,
           " bytes are in use.");
    }
    b->bytes = bytes, b->size_class = size_class;
  }
  return {reinterpret_cast<char*>(b) + kHeader, b, &give_back};
}

HostMemory host_memory() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  return {c.live, c.cached};
}

void release_cached_host_memory() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  for (Block*& list : c.free) release_list(std::exchange(list, nullptr));
  c.cached = 0;
}

}  // namespace vesta::cpu
