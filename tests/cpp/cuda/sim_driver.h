// A simulated device for the allocators: it has streams, events, graphs and memory, but no bytes. It satisfies
// MemDriver and HostMemDriver, so the allocators of the CUDA backend run on it unchanged.
//
// A stream is a queue of kernels, records and waits. How far the device gets between two calls of the host is a
// policy, so that a test can use a device that is always done, one that never starts, and one whose one stream hangs
// while the others run ahead. A kernel names the ranges it uses. The device reports in violations() when a kernel
// starts while a kernel of an earlier owner of the same bytes is unfinished, when memory is freed that is owned or in
// use, and when a capture is disturbed.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <vesta/cuda/memory/mem_driver.h>

namespace sim {

/// How far the device gets by itself.
///
/// eager: all queued work is done when a call returns. lazy: nothing is done until the host waits for it. random: some
/// steps of some streams. adversarial: one stream hangs, the others run all they can; which one hangs changes now and
/// then. timed: a call of the host takes a microsecond, a kernel its duration.
enum class Policy { eager, lazy, random, adversarial, timed };
inline constexpr std::array kPolicies = {Policy::eager, Policy::lazy, Policy::random, Policy::adversarial,
                                         Policy::timed};

/// The driver's calls, for counting.
enum class Call {
  malloc_,
  free_,
  va_reserve,
  va_map,
  va_unmap,
  va_release,
  mem_info,
  event_get,
  event_put,
  event_record,
  event_query,
  event_sync,
  stream_wait,
  is_capturing,
  host_malloc,
  host_free,
  count
};

/// One ownership of a range of memory: from the allocation to the free.
struct Range {
  uintptr_t low = 0, high = 0;
  int pool = 0;
  bool alive = true;
  bool captured = false;  // a graph uses it
  int outstanding = 0;  // kernels that are queued or running
  std::vector<std::shared_ptr<Range>> before;  // earlier owners of a part of it that were in use when it began
};
using Owner = std::shared_ptr<Range>;

/// A point in a stream that a record reached, or will reach.
struct Mark {
  uint64_t stream = 0;
  bool done = false;
  bool captured = false;
};

/// An entry of a stream's queue.
struct Op {
  enum Kind { kernel, record, wait } kind = kernel;
  std::vector<Owner> touched;
  int64_t duration = 0;
  std::shared_ptr<Mark> mark;
};

/// Captured work: each branch is the work of one stream.
struct Graph {
  int pool = 0;
  std::map<uint64_t, std::vector<Op>> branches;
  uint64_t origin = 0;
  std::shared_ptr<Mark> last_launch;
};

/// The properties of a device.
struct DeviceOptions {
  size_t memory = size_t(1) << 30;
  size_t addresses = size_t(1) << 40;  // that can be reserved at once; 0: not supported
  Policy policy = Policy::eager;
  uint64_t seed = 1;
};

class Device {
 public:
  using Stream = uint64_t;
  using Event = uint32_t;

  explicit Device(const DeviceOptions& options = {});

  // MemDriver and HostMemDriver.
  void* malloc_(size_t n);
  void free_(void* p);
  void* va_reserve(size_t n);
  bool va_map(void* base, size_t offset, size_t n);
  void va_unmap(void* base, size_t offset, size_t n);
  void va_release(void* base, size_t n);
  vesta::cuda::MemInfo mem_info();
  Event event_get();
  void event_put(Event e);
  void event_record(Event e, Stream s);
  bool event_query(Event e);
  void event_sync(Event e);
  void stream_wait(Stream s, Event e);
  bool is_capturing(Stream s);
  int64_t now();
  void* host_malloc(size_t n);
  void host_free(void* p);

  // The calls of a program on the device.
  /// Makes a stream.
  Stream stream();
  /// Records that a range has an owner, who got it from the allocator; `pool` is the id of a private pool.
  Owner own(void* p, size_t n, int pool = 0);
  /// Records that the owner freed it. Its queued kernels may still run.
  void disown(const Owner& owner);
  /// Queues a kernel.
  void kernel(Stream s, std::vector<Owner> touched, int64_t duration = 5);
  /// Orders a stream after another, as a program does with its own event.
  void order(Stream first, Stream second);
  /// Runs all work.
  void synchronize();
  /// Captures what is queued on `s` from now on, and on streams that wait for it.
  void begin_capture(Stream s, int pool);
  std::shared_ptr<Graph> end_capture(Stream s);
  void launch(const std::shared_ptr<Graph>& graph, Stream s);

  // The queries of a test.
  const std::vector<std::string>& violations() const { return violations_; }
  /// Makes `many` driver calls fail, after the next k - 1.
  void fail(int64_t k, int64_t many = 1);
  int64_t calls() const;
  int64_t calls(Call c) const { return counts_[size_t(c)]; }
  /// Returns the number of calls that allocate or free memory.
  int64_t memory_calls() const;
  size_t used() const { return used_; }
  size_t host_used() const { return host_used_; }
  size_t reserved_addresses() const { return reserved_addresses_; }
  int64_t live_events() const { return live_events_; }

 private:
  using Lock = std::lock_guard<std::recursive_mutex>;
  struct StreamState {
    std::deque<Op> queue;
    bool running = false;  // the kernel at the head
    int64_t free_at = 0;  // when the last kernel ends
  };
  struct EventState {
    bool taken = false;
    std::shared_ptr<Mark> mark;
  };
  struct Piece {  // of the map of who owned an address last
    uintptr_t high;
    Owner owner;
  };

  bool refused(Call c);
  void require(Call c);
  void complain(const std::string& what);
  EventState& event(Event e);
  uintptr_t addresses(size_t n);
  bool step(Stream s, bool hurry);
  void drain(uint64_t except);
  void force(Mark& mark);
  void tick();
  void start(const Op& op);
  std::vector<Owner> users(uintptr_t low, uintptr_t high) const;
  void check_unused(uintptr_t low, uintptr_t high);
  void cut_at(uintptr_t at);

  mutable std::recursive_mutex mutex_;
  DeviceOptions options_;
  std::mt19937_64 random_;
  std::vector<StreamState> streams_;
  std::vector<EventState> events_;
  std::vector<Event> spare_events_;
  std::map<uintptr_t, Piece> owners_;
  std::map<uintptr_t, size_t> mallocs_, ranges_, mapped_, host_;
  std::multimap<size_t, uintptr_t> spare_addresses_;
  uintptr_t next_address_ = uintptr_t(1) << 44;
  std::map<Stream, std::shared_ptr<Graph>> captures_;
  std::map<Stream, Stream> replay_streams_;  // by the stream that a branch was captured on
  std::array<int64_t, size_t(Call::count)> counts_{};
  int64_t until_failure_ = 0, failures_ = 0;
  int64_t now_ = 0;
  uint64_t victim_ = 0;
  size_t used_ = 0, host_used_ = 0, reserved_addresses_ = 0;
  int64_t live_events_ = 0;
  std::vector<std::string> violations_;
};

static_assert(vesta::cuda::MemDriver<Device> && vesta::cuda::HostMemDriver<Device>);

}  // namespace sim
