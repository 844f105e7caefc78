// Each thread has a list per size class (multiples of 64 bytes). A block freed by another thread joins that thread's
// list; a list that grows past its limit returns blocks to the system. Sanitizers see every block: no pooling there.
#include <vesta/core/pool.h>

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <vesta/core/base/error.h>

namespace vesta::pool {
constinit thread_local Lists lists __attribute__((tls_model("initial-exec"))) = {};

namespace {

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
    lists.state = Lists::closed;
    for (size_t c = 0; c < kClasses; ++c) {
      while (Lists::Block* b = lists.head[c]) {
        lists.head[c] = b->next;
        std::free(b);
      }
      lists.room[c] = 0;
    }
    std::lock_guard lock(registry_mutex());
    live_of_ended_threads += lists.live.exchange(0);
    std::erase(registry(), &lists);
  }
};

// A fork waits until no thread changes the registry. In the child the other threads are gone, and their lists with
// them: what they counted stays.
void lock_registry() { registry_mutex().lock(); }
void unlock_registry() { registry_mutex().unlock(); }
void forget_other_threads() {
  for (Lists* l : registry()) {
    if (l != &lists) live_of_ended_threads += l->live.load(std::memory_order_relaxed);
  }
  std::erase_if(registry(), [](const Lists* l) { return l != &lists; });
  registry_mutex().unlock();
}

[[gnu::noinline]] void open() {
  static thread_local Closer closer;
  (void)&closer;
  static const int once = pthread_atfork(&lock_registry, &unlock_registry, &forget_other_threads);
  VESTA_ASSERT(once == 0);
  std::lock_guard lock(registry_mutex());
  registry().push_back(&lists);
  std::ranges::fill(lists.room, kMaxBlocks);
  lists.state = Lists::open;
}

}  // namespace

void* take_from_system(size_t bytes) {
  if (lists.state == Lists::fresh) open();
  void* p = std::aligned_alloc(kAlignment, class_of(bytes) * kAlignment);
  VESTA_CHECK(p, memory, "out of memory: could not allocate ", bytes, " bytes.");
  return p;
}

namespace {
/// Adds to the number of live tensors. A thread that has ended, or has only freed what others made, has no counter that
/// anybody reads.
void count_live(int64_t delta) noexcept {
  if (lists.state == Lists::open) add_live(delta);
  else live_of_ended_threads += delta;
}
}  // namespace

void give_to_system(void* p) noexcept { std::free(p); }

void* take_counted_from_system(size_t bytes) {
  void* const p = take_from_system(bytes);
  count_live(+1);
  return p;
}

void give_counted_to_system(void* p) noexcept {
  std::free(p);
  count_live(-1);
}

int64_t live() noexcept {
  std::lock_guard lock(registry_mutex());
  int64_t n = live_of_ended_threads;
  for (Lists* l : registry()) n += l->live.load(std::memory_order_relaxed);
  return n;
}

}  // namespace vesta::pool
