// Blocks are rounded up to one of eight sizes per power of two and kept in one list per size. A large block (1 MiB and
// more) is a mapping of its own on a 2 MiB boundary: whole huge pages, and small pages for what is left over. A fresh
// 64 MiB buffer costs the kernel 15 times what a cached one costs (page faults), and huge pages take another factor of
// 6 off the first use.
//
// Note [How much is cached]
// What is live and what is cached together hold at most what was live at the recent peak, and half of it more; 64 MiB
// may always be cached. A training step therefore finds at its next turn every block that it used at this one, and a
// process never holds more than it needed at one time. Beyond the bound the blocks that were freed longest ago go back
// to the system. The recent peak is that of two spans; a span ends when eight times what is live then has been
// allocated in it, which is a few training steps. A program whose need has fallen gives its old peak back while it
// works, however large that was. Small blocks have no order of age; those that lay idle for a whole span go back at its
// end, if there are more than a few, lest they fill the bound and leave no room for those that are in use.
#include <vesta/core/cpu/allocator.h>

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <utility>

#include <vesta/core/base/sanitizers.h>
#include <vesta/core/cpu/kept_weights.h>
#include <vesta/core/pool.h>

namespace vesta::cpu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHuge = size_t(2) << 20;
constexpr size_t kLargeFrom = size_t(1) << 20;
constexpr size_t kMinCache = size_t(64) << 20;
constexpr size_t kIdle = size_t(16) << 20;  // cached bytes from which idle small blocks are given back
constexpr int kClasses = 48 * 8;
constexpr int kLargerClasses = 2;  // a large request may be served by a block of one of the next sizes
constexpr size_t kSpan = 8;  // a span ends when so many times what is live has been allocated in it

constexpr bool kCaching = !VESTA_SANITIZED;

/// The record of one block: in the 64 bytes before the data of a small one, apart from a large one.
struct Block {
  size_t bytes;
  void* data;
  int size_class;
  bool large, mapped;
  Block *next, *previous;  // in the list of its size; `previous` of large blocks only
  Block *older, *newer;  // in the list of all large ones that are cached
};
constexpr size_t kHeader = 64;
static_assert(sizeof(Block) <= kHeader);

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

/// Maps `bytes` on a 2 MiB boundary, in huge pages as far as they reach; null if the system refuses.
void* map_large(size_t bytes) {
  void* whole = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) return nullptr;
  auto* begin = static_cast<char*>(whole);
  size_t before = (kHuge - reinterpret_cast<uintptr_t>(begin) % kHuge) % kHuge;
  if (before) munmap(begin, before);
  munmap(begin + before + bytes, kHuge - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);
  return begin + before;
}

/// Returns a block of the system's memory, whose size is one of the classes; null if there is none.
Block* from_system(size_t bytes, int size_class) {
  if (bytes < kLargeFrom) {
    void* p = std::aligned_alloc(64, (bytes + kHeader + 63) / 64 * 64);
    return p ? new (p) Block{bytes, static_cast<char*>(p) + kHeader, size_class, false, false, {}, {}, {}, {}}
             : nullptr;
  }
  static_assert(kLargeFrom / 16 >= kPage, "the sizes of large blocks are whole pages");
  void* record = pool::take(sizeof(Block));
  void* p = kCaching ? map_large(bytes) : nullptr;
  bool mapped = p;
  if (!p) p = std::aligned_alloc(kPage, bytes);
  if (p) return new (record) Block{bytes, p, size_class, true, mapped, {}, {}, {}, {}};
  pool::give(record, sizeof(Block));
  return nullptr;
}

void to_system(Block* b) {
  if (!b->large) return std::free(b);
  if (b->mapped) {
    munmap(b->data, b->bytes);
  } else {
    std::free(b->data);
  }
  pool::give(b, sizeof(Block));
}

/// Returns the blocks of a list that is linked by `next` to the system.
void release_list(Block* b) {
  while (b) to_system(std::exchange(b, b->next));
}

/// The cached blocks and the bytes in use; see Note [How much is cached]. Its functions expect the lock to be held.
struct Cache {
  std::mutex mutex;
  Block* free[kClasses] = {};
  uint32_t count[kClasses] = {};  // of the blocks in `free`
  uint32_t idle[kClasses] = {};  // the least there were in this span: so many have not been used in it
  Block *oldest = nullptr, *newest = nullptr;  // of the large ones
  size_t live = 0, cached = 0;
  size_t peak = 0, earlier_peak = 0;  // of this span and the one before
  size_t since = 0;  // bytes allocated in this span

  /// Returns what may be held once `bytes` more are live.
  size_t bound(size_t bytes = 0) const {
    size_t recent = std::max({peak, earlier_peak, live + bytes});
    return std::max(recent + recent / 2, live + bytes + kMinCache);
  }

  /// Counts an allocation; returns blocks to be given back.
  [[nodiscard]] Block* count_live(size_t bytes) {
    live += bytes;
    peak = std::max(peak, live);
    since += bytes;
    if (since / kSpan <= std::max(live, kMinCache)) [[likely]]
      return nullptr;
    earlier_peak = peak, peak = live, since = 0;
    return take_idle();
  }

  /// Takes out the small blocks that were idle in the span that ends.
  [[gnu::noinline]] Block* take_idle() {
    Block* out = nullptr;
    const bool many = cached > kIdle;
    for (int i = 0; i < kClasses; ++i) {
      if (many && idle[i] > 0 && !free[i]->large) {
        Block** rest = &free[i];  // the last to be freed come first
        for (uint32_t used = count[i] - idle[i]; used > 0; --used) rest = &(*rest)->next;
        while (*rest) {
          Block* b = std::exchange(*rest, (*rest)->next);
          cached -= b->bytes, --count[i];
          b->next = std::exchange(out, b);
        }
      }
      idle[i] = count[i];
    }
    return out;
  }

  void keep(Block* b) {
    Block*& head = free[b->size_class];
    b->next = head;
    cached += b->bytes, ++count[b->size_class];
    if (b->large) {
      b->previous = nullptr;
      if (head) head->previous = b;
      b->newer = nullptr, b->older = newest;
      (newest ? newest->newer : oldest) = b;
      newest = b;
    }
    head = b;
  }

  /// Takes a cached block out of its lists.
  Block* take(Block* b) {
    cached -= b->bytes;
    const uint32_t left = --count[b->size_class];
    idle[b->size_class] = std::min(idle[b->size_class], left);
    if (b->large) {
      (b->previous ? b->previous->next : free[b->size_class]) = b->next;
      if (b->next) b->next->previous = b->previous;
      (b->older ? b->older->newer : oldest) = b->newer;
      (b->newer ? b->newer->older : newest) = b->older;
    } else {
      free[b->size_class] = b->next;
    }
    return b;
  }

  /// Returns a cached block of the class, or of one of the next if it is large; null if there is none.
  Block* find(int size_class, bool large) {
    if (free[size_class]) return take(free[size_class]);
    for (int i = 1; large && i <= kLargerClasses && size_class + i < kClasses; ++i) {
      if (free[size_class + i]) return take(free[size_class + i]);
    }
    return nullptr;
  }

  /// Takes out blocks until `bytes` more, live or cached, are within the bound: large ones, the oldest first, then
  /// small ones. Returns them as a list.
  Block* make_room(size_t bytes, size_t limit) {
    Block* out = nullptr;
    const auto take_out = [&](Block* b) {
      take(b);
      b->next = std::exchange(out, b);
    };
    while (oldest && live + cached + bytes > limit) take_out(oldest);
    for (int i = kClasses - 1; i >= 0 && live + cached + bytes > limit; --i) {
      while (free[i] && live + cached + bytes > limit) take_out(free[i]);
    }
    return out;
  }
};
Cache& cache() {
  static Cache* c = [] {
    // Another thread may hold the lock while this one forks; the child must find it free.
    pthread_atfork([] { cache().mutex.lock(); }, [] { cache().mutex.unlock(); }, [] { cache().mutex.unlock(); });
    return new Cache;  // outlives every tensor
  }();
  return *c;
}

void give_back(void* context) {
  auto* b = static_cast<Block*>(context);
  Cache& c = cache();
  std::unique_lock lock(c.mutex);
  c.live -= b->bytes;
  if (!kCaching) {
    lock.unlock();
    return to_system(b);
  }
  if (c.live + c.cached + b->bytes <= c.bound()) return c.keep(b);
  Block* out = c.make_room(b->bytes, c.bound());
  if (c.live + c.cached + b->bytes <= c.bound()) {
    c.keep(b);
  } else {
    b->next = out;
    out = b;
  }
  lock.unlock();
  release_list(out);
}

}  // namespace

Memory allocate(size_t nbytes) {
  VESTA_CHECK(nbytes < size_t(1) << 47, memory, "out of memory: tried to allocate ", nbytes, " bytes on the CPU.");
  size_t bytes = nbytes;
  int size_class = round_up(bytes);
  Cache& c = cache();
  Block *b, *out = nullptr;
  {
    std::lock_guard lock(c.mutex);
    b = c.find(size_class, bytes >= kLargeFrom);
    out = b ? c.count_live(b->bytes) : c.make_room(bytes, c.bound(bytes));
  }
  release_list(out);
  if (!b) {
    b = from_system(bytes, size_class);
    if (!b) {
      drop_packed_weights();
      release_cached_host_memory();
      b = from_system(bytes, size_class);
    }
    std::unique_lock lock(c.mutex);
    VESTA_CHECK(b, memory, "out of memory: tried to allocate ", nbytes, " bytes on the CPU; ", c.live,
                " bytes are in use.");
    out = c.count_live(bytes);
    lock.unlock();
    release_list(out);
  }
  return {b->data, b, &give_back};
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
  std::ranges::fill(c.count, 0);
  std::ranges::fill(c.idle, 0);
  c.oldest = c.newest = nullptr;
  c.cached = 0;
}

}  // namespace vesta::cpu
