// Each thread has a list per size class (multiples of 64 bytes). A block freed by another thread joins that thread's
// list; a list that grows past its limit returns blocks to the system. Sanitizers see every block: no pooling there.
#include <vesta/core/pool.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/core/base/sanitizers.h>

namespace vesta::pool {
namespace {

constexpr size_t kClasses = kMaxBytes / kAlignment + 1;
constexpr uint32_t kMaxBlocks = 512;

struct Block {
  Block* next;
};

struct Lists {
  Block* head[kClasses];
  uint32_t count[kClasses];
  std::atomic<int64_t> live;
  enum : uint8_t { fresh, open, closed } state;
};
constinit thread_local Lists lists __attribute__((tls_model("initial-exec"))) = {};

std::mutex& registry_mutex() {
  static auto* m = new std::mutex;  // outlives threads that end during exit
  return *m;
}
std::vector<Lists*>& registry() {
  static auto* r = new std::vector<Lists*>;
  return *r;
}
std::atomic<int64_t> live_of_ended_threads{0};

struct Closer {  // its destructor runs when the thread ends
  ~Closer() {
    std::lock_guard lock(registry_mutex());
    lists.state = Lists::closed;
    for (size_t c = 0; c < kClasses; ++c) {
      while (Block* b = lists.head[c]) {
        lists.head[c] = b->next;
        std::free(b);
      }
      lists.count[c] = 0;
    }
    live_of_ended_threads += lists.live.exchange(0);
    std::erase(registry(), &lists);
  }
};

[[gnu::noinline]] void open() {
  static thread_local Closer closer;
  (void)&closer;
  std::lock_guard lock(registry_mutex());
  registry().push_back(&lists);
  lists.state = Lists::open;
}

[[gnu::noinline]] void* from_system(size_t bytes) {
  if (lists.state == Lists::fresh) open();
  void* p = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  VESTA_CHECK(p, memory, "out of memory: could not allocate ", bytes, " bytes.");
  return p;
}

}  // namespace

void* take(size_t bytes) {
  size_t c = (bytes + kAlignment - 1) / kAlignment;
  if (!VESTA_SANITIZED && c < kClasses) {
    if (Block* b = lists.head[c]) {
      lists.head[c] = b->next;
      --lists.count[c];
      return b;
    }
  }
  return from_system(bytes);
}

void give(void* p, size_t bytes) noexcept {
  size_t c = (bytes + kAlignment - 1) / kAlignment;
  if (!VESTA_SANITIZED && c < kClasses && lists.state == Lists::open && lists.count[c] < kMaxBlocks) {
    auto* b = static_cast<Block*>(p);
    b->next = lists.head[c];
    lists.head[c] = b;
    ++lists.count[c];
    return;
  }
  std::free(p);
}

void count_live(int delta) noexcept {
  // This thread has ended, or only freed what others made: nobody reads its counter.
  if (lists.state != Lists::open) {
    live_of_ended_threads += delta;
    return;
  }
  // Only this thread writes its counter: no locked instruction is needed.
  lists.live.store(lists.live.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
}

int64_t live() noexcept {
  std::lock_guard lock(registry_mutex());
  int64_t n = live_of_ended_threads;
  for (Lists* l : registry()) n += l->live.load(std::memory_order_relaxed);
  return n;
}

}  // namespace vesta::pool
