// The runtime interface (runtime.h) without a GPU: devices whose memory is the host's, streams that are queues of
// closures, and a scheduler that runs them in any order CUDA would allow. A tour:
//
//   Arena       a device's memory: one reservation, closed to the host (PROT_NONE) while no kernel runs, so that a
//               dereference of a device pointer on the host is caught where it happens
//   Stream      a queue of tasks: kernels, copies, event records and waits
//   Machine     all of it under one lock; run_until() executes tasks until a wait is satisfied
//
// Settings, for tests: VESTA_EMULATION_SCHEDULE (eager, lazy, random), VESTA_EMULATION_ORDER (ascending, descending,
// shuffled threads), VESTA_EMULATION_SEED, VESTA_EMULATION_DEVICES, VESTA_EMULATION_MEMORY (MiB of a device),
// VESTA_EMULATION_PAGEABLE (1: it reads pageable memory by itself), VESTA_EMULATION_CAPABILITY (90: 9.0),
// VESTA_EMULATION_QUEUES (hardware queues of a device; 0: as many as streams), VESTA_EMULATION_PEERS (0: refused).
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/cuda/emulation/device.h>
#include <vesta/cuda/runtime_device.h>

namespace vesta::cuda {
namespace emulation {
namespace {

constexpr size_t kPage = 4096, kHugePage = 2 << 20;
constexpr size_t kMaxQueued = 512;  // a launch beyond this runs some of the queue, as a GPU's full queue does

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}
std::string word(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

/// A device's memory: first fit in a reservation.
class Arena {
 public:
  explicit Arena(size_t capacity) : capacity_(capacity) {
    reserved_ = 4 * capacity;  // room for reserved addresses (va_reserve) beside plain memory
    void* p = mmap(nullptr, reserved_ + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    base_ = reinterpret_cast<char*>(round(reinterpret_cast<size_t>(p), kHugePage));
    madvise(base_, reserved_, MADV_HUGEPAGE);  // open() and close() take time by the page
    gaps_[0] = reserved_;
  }
  /// Reserves addresses without memory; null if there are none.
  char* reserve(size_t nbytes) {
    nbytes = round(nbytes);
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it) {
      if (it->second < nbytes) continue;
      const size_t at = it->first, left = it->second - nbytes;
      gaps_.erase(it);
      if (left) gaps_[at + nbytes] = left;
      top_ = std::max(top_, at + nbytes);
      return base_ + at;
    }
    return nullptr;
  }
  void release(char* p, size_t nbytes) {
    size_t at = size_t(p - base_), size = round(nbytes);
    auto next = gaps_.lower_bound(at);
    if (next != gaps_.end() && at + size == next->first) size += next->second, next = gaps_.erase(next);
    if (next != gaps_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == at) {
        before->second += size;
        return;
      }
    }
    gaps_[at] = size;
  }
  bool charge(size_t nbytes) {
    nbytes = round(nbytes);
    if (used_ + nbytes > capacity_) return false;
    used_ += nbytes;
    return true;
  }
  void refund(size_t nbytes) { used_ -= round(nbytes); }
  std::span<char> addresses() const { return {base_, reserved_}; }
  bool holds(const void* p) const { return p >= base_ && p < base_ + reserved_; }
  size_t used() const { return used_; }
  size_t capacity() const { return capacity_; }
  void open() { mprotect(base_, round(top_, kHugePage), PROT_READ | PROT_WRITE); }
  void close() { mprotect(base_, round(top_, kHugePage), PROT_NONE); }
  static size_t round(size_t n, size_t unit = kPage) { return (n + unit - 1) / unit * unit; }

 private:
  char* base_ = nullptr;
  size_t reserved_ = 0, capacity_, used_ = 0, top_ = 0;
  std::map<size_t, size_t> gaps_;  // offset -> bytes
};

struct Event {
  int device = 0;
  uint64_t recorded = 0, done = 0;  // tickets: how often record was called, and which of them has run
  std::chrono::steady_clock::time_point time;
};
using EventPtr = std::shared_ptr<Event>;

struct Task {
  const char* name = "";
  std::function<void()> work;
  EventPtr event;            // of a record or a wait
  uint64_t ticket = 0;
  bool waits = false;
  std::function<bool()> poll;  // instead of `work`: advances what needs other processes; true when done
  bool polled = false;         // whether `poll` is set
  uint64_t place = 0;          // in the order in which tasks were given to the device
};

struct Stream {
  int device = 0;
  int hardware_queue = 0;  // streams of one hardware queue run in the order in which their tasks were given
  std::deque<Task> queue;
  bool external = false;  // it has had work that needs other processes
  bool runnable() {
    if (queue.empty()) return false;
    Task& t = queue.front();
    if (t.poll) return t.polled || (t.polled = t.poll());
    return !t.waits || t.event->done >= t.ticket;
  }
};

}  // namespace

/// All of the emulated hardware, under one lock.
class Machine {
 public:
  static Machine& get() {
    static Machine* m = new Machine;  // never destroyed: static objects may free device memory at exit
    return *m;
  }

  std::recursive_mutex lock;
  std::vector<std::unique_ptr<Arena>> arenas;
  std::unordered_map<void*, std::pair<int, size_t>> blocks;      // device memory by address
  std::unordered_map<void*, size_t> reservations, mappings, host_blocks;
  std::unordered_map<StreamHandle, std::unique_ptr<Stream>> streams;
  std::unordered_map<EventHandle, EventPtr> events;
  std::set<std::pair<int, int>> peers;               // the first may use plain memory of the second
  std::unordered_map<void*, std::set<int>> allowed;  // devices beside its own that may use a mapping
  bool reads_pageable_memory = false;
  int capability = 90;
  rt::Counters counters;
  Watch watch;
  uint64_t failing = 0;
  Schedule schedule = Schedule::eager;
  std::mt19937_64 random;

  Stream& stream(StreamHandle s) {
    if (s) {
      auto it = streams.find(s);
      if (it != streams.end()) return *it->second;
    }
    return *defaults_[size_t(device())];
  }
  static int& device() {
    thread_local int d = 0;
    return d;
  }
  void push(StreamHandle s, Task t) {
    Stream& to = stream(s);
    to.external = to.external || t.poll;
    t.place = ++given_;
    to.queue.push_back(std::move(t));
    if (schedule == Schedule::eager) {
      run_all();
    } else if (schedule == Schedule::random && random() % 4 == 0) {
      run_some(random() % 4);
    } else if (to.queue.size() > kMaxQueued) {
      run_some(kMaxQueued / 2);
    }
  }
  /// Runs tasks until `done()`; `target` is the stream whose first task the wait needs.
  template <class Done>
  void run_until(Stream* target, Done done) {
    while (!done()) {
      {
        Opened opened(*this);
        while (!done()) {
          Stream* next = schedule == Schedule::lazy && target ? needed(target) : any_runnable();
          if (!next) break;
          run_head(*next);
        }
      }
      if (done()) return;
      VESTA_ASSERT(polls());  // every wait is for something recorded before it, or for another process
      lock.unlock();          // held once here: the runtime's calls do not call each other while they wait
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      lock.lock();
      if (schedule == Schedule::lazy) progress();
    }
  }
  /// Advances work that needs other processes, as a device does by itself. `lazy` runs only what that needs.
  void progress() {
    if (!polls()) return;
    Opened opened(*this);
    if (schedule != Schedule::lazy) return schedule == Schedule::eager ? run_all() : run_some(1 + random() % 8);
    for_each([&](Stream& s) {
      while (has_poll(s)) {
        Stream* next = needed(&s);
        if (!next) return;
        run_head(*next);
      }
    });
  }
  /// Binds a new stream to one of its device's hardware queues, in turn.
  void bind(Stream& s) {
    if (queues_) s.hardware_queue = ++bound_[s.device] % queues_;
  }
  void finish(Stream& s) {
    run_until(&s, [&] { return s.queue.empty(); });
  }
  void finish_device(int device) {
    run_until(nullptr, [&] {
      bool busy = false;
      for_each([&](Stream& s) { busy = busy || (s.device == device && !s.queue.empty()); });
      return !busy;
    });
  }
  /// Runs what is queued before an event's latest record.
  void finish(const EventPtr& e) {
    const uint64_t ticket = e->recorded;
    run_until(owner_of(e, ticket), [&] { return e->done >= ticket; });
  }
  /// Returns whether an event is done. Repeated queries of an event that follows other processes' work succeed in the
  /// end under any schedule, because perhaps no thread waits.
  bool query(const EventPtr& e) {
    Stream* s = schedule == Schedule::eager ? nullptr : owner_of(e, e->recorded);
    if (s && s->external) {
      Opened opened(*this);
      while (e->done < e->recorded) {
        Stream* next = needed(s);
        if (!next) break;
        run_head(*next);
      }
    }
    return e->done >= e->recorded;
  }
  /// Returns whether `reader` may read memory of `owner` at `p` without the host's help.
  bool can_read(int reader, int owner, const void* p) {
    for (auto& [at, nbytes] : mappings) {
      if (p >= at && p < static_cast<char*>(at) + nbytes) return allowed[at].count(reader) != 0;
    }
    return peers.count({reader, owner}) != 0;
  }
  bool take_failure() { return failing && --failing == 0; }

  /// A guard that opens the devices' memory while it lives.
  class Opened {
   public:
    explicit Opened(Machine& m) : m_(m) {
      if (m_.open_++ == 0)
        for (auto& a : m_.arenas) a->open();
    }
    ~Opened() {
      if (--m_.open_ == 0)
        for (auto& a : m_.arenas) a->close();
    }

   private:
    Machine& m_;
  };

 private:
  Machine() {
    const int count = int(std::min<uint64_t>(setting("VESTA_EMULATION_DEVICES", 2), 8));
    const size_t memory = setting("VESTA_EMULATION_MEMORY", 4096) << 20;
    for (int i = 0; i < count; ++i) {
      arenas.push_back(std::make_unique<Arena>(memory));
      defaults_.push_back(std::make_unique<Stream>());
      defaults_.back()->device = i;
    }
    reads_pageable_memory = setting("VESTA_EMULATION_PAGEABLE", 0) != 0;
    capability = int(setting("VESTA_EMULATION_CAPABILITY", 90)), queues_ = int(setting("VESTA_EMULATION_QUEUES", 0));
    const uint64_t seed = setting("VESTA_EMULATION_SEED", 1);
    random.seed(seed);
    const std::string when = word("VESTA_EMULATION_SCHEDULE"), order = word("VESTA_EMULATION_ORDER");
    schedule = when == "lazy" ? Schedule::lazy : when == "random" ? Schedule::random : Schedule::eager;
    set_order(order == "descending" ? Order::descending
              : order == "shuffled" ? Order::shuffled
                                    : Order::ascending,
              seed);
  }
  template <class F>
  void for_each(F f) {
    for (auto& s : defaults_) f(*s);
    for (auto& [handle, s] : streams) f(*s);
  }
  static bool has_poll(const Stream& s) {
    return std::any_of(s.queue.begin(), s.queue.end(), [](const Task& t) { return bool(t.poll); });
  }
  bool polls() {
    bool any = false;
    for_each([&](Stream& s) { any = any || has_poll(s); });
    return any;
  }
  /// Returns the stream whose first task comes before that of `s` in their hardware queue, or null.
  Stream* blocker(const Stream& s) {
    if (!queues_ || s.queue.empty()) return nullptr;
    Stream* first = nullptr;
    uint64_t place = s.queue.front().place;
    for_each([&](Stream& other) {
      if (other.device != s.device || other.hardware_queue != s.hardware_queue || other.queue.empty()) return;
      if (other.queue.front().place < place) place = other.queue.front().place, first = &other;
    });
    return first;
  }
  Stream* any_runnable() {
    std::vector<Stream*> ready;
    for_each([&](Stream& s) {
      if (!blocker(s) && s.runnable()) ready.push_back(&s);
    });
    return ready.empty() ? nullptr : ready[schedule == Schedule::eager ? 0 : random() % ready.size()];
  }
  Stream* owner_of(const EventPtr& e, uint64_t ticket) {
    Stream* found = nullptr;
    for_each([&](Stream& s) {
      for (const Task& t : s.queue) {
        if (t.event == e && !t.waits && t.ticket >= ticket) found = &s;
      }
    });
    return found;
  }
  /// Finds the stream whose first task must run before that of `s` can: `s` itself, the stream that records what `s`
  /// waits for, or the one that is ahead in the hardware queue.
  Stream* needed(Stream* s) {
    while (s) {
      if (Stream* first = blocker(*s)) {
        s = first;
        continue;
      }
      if (s->runnable()) break;
      if (s->queue.empty() || s->queue.front().poll) return nullptr;
      s = owner_of(s->queue.front().event, s->queue.front().ticket);
    }
    return s;
  }
  void run_head(Stream& s) {
    Task t = std::move(s.queue.front());
    s.queue.pop_front();
    if (t.work) {
      if (watch.begin) watch.begin(t.name);
      t.work();
      if (watch.end) watch.end();
    }
    if (t.event && !t.waits) t.event->done = t.ticket, t.event->time = std::chrono::steady_clock::now();
  }
  void run_all() {
    Opened opened(*this);
    while (Stream* s = any_runnable()) run_head(*s);
  }
  void run_some(uint64_t n) {
    Opened opened(*this);
    for (uint64_t i = 0; i < n; ++i) {
      Stream* s = any_runnable();
      if (!s) return;
      run_head(*s);
    }
  }

  std::vector<std::unique_ptr<Stream>> defaults_;  // every device's default stream
  int open_ = 0;
  int queues_ = 0;  // hardware queues of a device; 0: each stream has one
  std::map<int, int> bound_;  // streams bound so far, by device
  uint64_t given_ = 0;
};

void enqueue(StreamHandle stream, const char* name, std::function<void()> work) {
  Machine& m = Machine::get();
  std::lock_guard guard(m.lock);
  ++m.counters.launches;
  m.push(stream, Task{name, std::move(work), {}, 0, false, {}, false});
}

void enqueue_polled(StreamHandle stream, const char* name, std::function<bool()> poll) {
  Machine& m = Machine::get();
  std::lock_guard guard(m.lock);
  ++m.counters.launches;
  m.push(stream, Task{name, {}, {}, 0, false, std::move(poll), false});
}

void progress() {
  Machine& m = Machine::get();
  std::lock_guard guard(m.lock);
  m.progress();
}

}  // namespace emulation
}  // namespace vesta::cuda

/// Queues the work of a stand-in for one of NVIDIA's libraries on a stream of the emulated device
/// (tests/cpp/cuda/fakes).
extern "C" VESTA_API void vesta_emulation_enqueue(void* stream, const char* name, void (*work)(void*), void* argument) {
  vesta::cuda::emulation::enqueue(static_cast<vesta::cuda::StreamHandle>(stream), name, [=] { work(argument); });
}

/// Does the same for work that needs other processes: `poll` is called with the device's memory open, until it returns
/// true.
extern "C" VESTA_API void vesta_emulation_enqueue_polled(void* stream, const char* name, bool (*poll)(void*),
                                                         void* argument) {
  vesta::cuda::emulation::enqueue_polled(static_cast<vesta::cuda::StreamHandle>(stream), name,
                                         [=] { return poll(argument); });
}

/// Advances such work while no thread of this process waits for it.
extern "C" VESTA_API void vesta_emulation_progress() { vesta::cuda::emulation::progress(); }

namespace vesta::cuda {
namespace emulation {

void set_schedule(Schedule schedule, uint64_t seed) {
  Machine& m = Machine::get();
  std::lock_guard guard(m.lock);
  for (size_t i = 0; i < m.arenas.size(); ++i) m.finish_device(int(i));
  m.schedule = schedule;
  m.random.seed(seed);
}

void set_watch(const Watch& watch) {
  Machine& m = Machine::get();
  std::lock_guard guard(m.lock);
  m.watch = watch;
}
std::vector<std::span<char>> device_memory() {
  std::vector<std::span<char>> all;
  for (auto& a : Machine::get().arenas) all.push_back(a->addresses());
  return all;
}

void fail_allocation(uint64_t k) {
  Machine& m = Machine::get();
  std::lock_guard guard(m.lock);
  m.failing = k;
}

}  // namespace emulation

namespace rt {
namespace {
using emulation::Arena;
using emulation::Event;
using emulation::EventPtr;
using emulation::Machine;
using emulation::Task;

struct Locked {
  Machine& m = Machine::get();
  std::lock_guard<std::recursive_mutex> guard{m.lock};
  Machine* operator->() { return &m; }
};

bool on_device(Machine& m, const void* p) {
  return std::any_of(m.arenas.begin(), m.arenas.end(), [&](auto& a) { return a->holds(p); });
}

void touch(const void* p, size_t nbytes, bool written) {
  const emulation::Watch& watch = Machine::get().watch;
  if (watch.touch) watch.touch(p, nbytes, written);
}
/// The work of a copy.
void copy(void* to, const void* from, size_t nbytes) {
  std::memmove(to, from, nbytes);
  touch(from, nbytes, false);
  touch(to, nbytes, true);
}

Status find(Machine& m, EventHandle e, EventPtr* to) {
  auto it = m.events.find(e);
  if (it == m.events.end()) return Status::invalid_value;
  *to = it->second;
  return Status::success;
}
}  // namespace

const char* implementation() { return "emulation"; }
int version() { return 0; }
const char* architectures() {
  const char* text = std::getenv("VESTA_EMULATION_ARCHITECTURES");
  return text ? text : "90";
}

const char* status_name(Status s) {
  switch (s) {
    case Status::success: return "cudaSuccess";
    case Status::invalid_value: return "cudaErrorInvalidValue";
    case Status::out_of_memory: return "cudaErrorMemoryAllocation";
    case Status::no_device: return "cudaErrorNoDevice";
    case Status::invalid_device: return "cudaErrorInvalidDevice";
    case Status::not_ready: return "cudaErrorNotReady";
    case Status::not_supported: return "cudaErrorNotSupported";
    default: return "cudaErrorUnknown";
  }
}
const char* status_text(Status s) {
  switch (s) {
    case Status::success: return "no error";
    case Status::invalid_value: return "invalid argument";
    case Status::out_of_memory: return "out of memory";
    case Status::no_device: return "no CUDA-capable device is detected";
    case Status::invalid_device: return "invalid device ordinal";
    case Status::not_ready: return "device not ready";
    case Status::not_supported: return "operation not supported";
    default: return "unknown error";
  }
}

Status driver_version(int* version) {
  *version = 13000;
  return Status::success;
}
Status device_count(int* count) {
  *count = int(Locked()->arenas.size());
  return *count ? Status::success : Status::no_device;
}
Status device_properties(int device, DeviceProperties* to) {
  Locked l;
  if (device < 0 || size_t(device) >= l->arenas.size()) return Status::invalid_device;
  std::strncpy(to->name, "Emulated H200", sizeof to->name - 1);
  to->major = l->capability / 10, to->minor = l->capability % 10, to->multi_processor_count = 132;
  to->max_threads_per_multi_processor = 2048, to->regs_per_multiprocessor = 65536;
  to->shared_memory_per_block_optin = 232448;
  to->total_memory = l->arenas[size_t(device)]->capacity();
  to->l2_cache_size = 60 << 20;
  to->reads_pageable_memory = l->reads_pageable_memory;
  return Status::success;
}
Status set_device(int device) {
  Locked l;
  if (device < 0 || size_t(device) >= l->arenas.size()) return Status::invalid_device;
  Machine::device() = device;
  return Status::success;
}
Status get_device(int* device) {
  *device = Machine::device();
  return Status::success;
}
/// Sets the device as another library would, for tests.
extern "C" VESTA_API int vesta_emulation_set_device(int device) { return int(set_device(device)); }
Status device_synchronize() {
  Locked l;
  ++l->counters.synchronizations;
  l->finish_device(Machine::device());
  return Status::success;
}
Status can_access_peer(int, int, bool* yes) {
  *yes = true;
  return Status::success;
}
Status enable_peer_access(int peer) {
  Locked l;
  if (peer < 0 || size_t(peer) >= l->arenas.size()) return Status::invalid_device;
  if (emulation::setting("VESTA_EMULATION_PEERS", 1) == 0) return Status::not_supported;
  l->peers.insert({Machine::device(), peer});
  return Status::success;
}

Status malloc(void** p, size_t nbytes) {
  Locked l;
  ++l->counters.mallocs;
  const int d = Machine::device();
  Arena& a = *l->arenas[size_t(d)];
  if (l->take_failure() || !a.charge(nbytes)) return Status::out_of_memory;
  char* at = a.reserve(std::max<size_t>(nbytes, 1));
  if (!at) {
    a.refund(nbytes);
    return Status::out_of_memory;
  }
  Machine::Opened opened(l.m);
  std::memset(at, 0xff, nbytes);  // NaN, so that reading unwritten memory shows
  l->blocks[at] = {d, nbytes};
  *p = at;
  return Status::success;
}
Status free(void* p) {
  if (!p) return Status::success;
  Locked l;
  auto it = l->blocks.find(p);
  if (it == l->blocks.end()) return Status::invalid_value;
  auto [d, nbytes] = it->second;
  l->finish_device(d);  // as cudaFree does
  l->blocks.erase(it);
  Arena& a = *l->arenas[size_t(d)];
  a.release(static_cast<char*>(p), std::max<size_t>(nbytes, 1));
  a.refund(nbytes);
  return Status::success;
}
Status memory_info(size_t* free, size_t* total) {
  Locked l;
  const Arena& a = *l->arenas[size_t(Machine::device())];
  *total = a.capacity(), *free = a.capacity() - a.used();
  return Status::success;
}
Status host_malloc(void** p, size_t nbytes) {
  Locked l;
  if (l->take_failure()) return Status::out_of_memory;
  *p = std::aligned_alloc(4096, Arena::round(std::max<size_t>(nbytes, 1)));
  if (!*p) return Status::out_of_memory;
  l->host_blocks[*p] = nbytes;
  return Status::success;
}
Status host_free(void* p) {
  Locked l;
  if (!l->host_blocks.erase(p)) return Status::invalid_value;
  for (size_t i = 0; i < l->arenas.size(); ++i) l->finish_device(int(i));
  std::free(p);
  return Status::success;
}

bool is_page_locked(const void* p) {
  Locked l;
  return std::any_of(l->host_blocks.begin(), l->host_blocks.end(),
                     [&](auto& b) { return p >= b.first && p < static_cast<char*>(b.first) + b.second; });
}

Status va_granularity(int, size_t* bytes) {
  *bytes = 2 << 20;
  return Status::success;
}
Status va_reserve(void** address, size_t nbytes) {
  Locked l;
  *address = l->arenas[size_t(Machine::device())]->reserve(nbytes);
  if (!*address) return Status::out_of_memory;
  l->reservations[*address] = nbytes;
  return Status::success;
}
Status va_release(void* address, size_t nbytes) {
  Locked l;
  if (!l->reservations.erase(address)) return Status::invalid_value;
  for (auto& a : l->arenas) {
    if (a->holds(address)) a->release(static_cast<char*>(address), nbytes);
  }
  return Status::success;
}
Status va_map(int device, void* at, size_t nbytes) {
  Locked l;
  if (l->take_failure() || !l->arenas[size_t(device)]->charge(nbytes)) return Status::out_of_memory;
  l->mappings[at] = nbytes;
  Machine::Opened opened(l.m);
  std::memset(at, 0xff, nbytes);
  return Status::success;
}
Status va_unmap(void* at, size_t nbytes) {
  Locked l;
  if (!l->mappings.erase(at)) return Status::invalid_value;
  l->allowed.erase(at);
  for (auto& a : l->arenas) {
    if (a->holds(at)) a->refund(nbytes);
  }
  return Status::success;
}

Status va_allow(int device, void* at, size_t nbytes) {
  Locked l;
  const auto found = l->mappings.find(at);
  if (found == l->mappings.end() || found->second != nbytes) return Status::invalid_value;
  l->allowed[at].insert(device);
  return Status::success;
}

Status memcpy_async(void* to, const void* from, size_t nbytes, Copy kind, StreamHandle stream) {
  Locked l;
  ++l->counters.copies;
  const bool to_device = on_device(l.m, to), from_device = on_device(l.m, from);
  const bool right = (kind == Copy::host_to_device && to_device && !from_device) ||
                     (kind == Copy::device_to_host && !to_device && from_device) ||
                     (kind == Copy::device_to_device && to_device && from_device) ||
                     (kind == Copy::host_to_host && !to_device && !from_device);
  if (!right && nbytes) return Status::invalid_value;
  const bool staged_first = kind == Copy::host_to_device && !l->reads_pageable_memory && !is_page_locked(from);
  if (staged_first) {  // pageable memory is read before the call returns
    auto staged =
        std::make_shared<std::vector<char>>(static_cast<const char*>(from), static_cast<const char*>(from) + nbytes);
    l->push(stream, Task{"memcpy", [=] { copy(to, staged->data(), nbytes); }, {}, 0, false, {}, false});
    return Status::success;
  }
  l->push(stream, Task{"memcpy", [=] { copy(to, from, nbytes); }, {}, 0, false, {}, false});
  if (kind == Copy::device_to_host && !is_page_locked(to)) l->finish(l->stream(stream));
  return Status::success;
}
Status memcpy_peer_async(void* to, int to_device, const void* from, int from_device, size_t nbytes,
                         StreamHandle stream) {
  {
    Locked l;
    if (to_device != from_device && !l->can_read(to_device, from_device, from)) ++l->counters.staged_copies;
  }
  return memcpy_async(to, from, nbytes, Copy::device_to_device, stream);
}
Status memset_async(void* to, int value, size_t nbytes, StreamHandle stream) {
  Locked l;
  const auto set = [=] {
    std::memset(to, value, nbytes);
    touch(to, nbytes, true);
  };
  l->push(stream, Task{"memset", set, {}, 0, false, {}, false});
  return Status::success;
}

Status stream_create(StreamHandle* stream, int) {
  Locked l;
  auto s = std::make_unique<emulation::Stream>();
  s->device = Machine::device();
  l->bind(*s);
  *stream = reinterpret_cast<StreamHandle>(s.get());
  l->streams[*stream] = std::move(s);
  return Status::success;
}
Status stream_destroy(StreamHandle stream) {
  Locked l;
  if (!l->streams.count(stream)) return Status::invalid_value;
  l->finish(l->stream(stream));
  l->streams.erase(stream);
  return Status::success;
}
Status stream_synchronize(StreamHandle stream) {
  Locked l;
  ++l->counters.synchronizations;
  l->finish(l->stream(stream));
  return Status::success;
}
Status stream_query(StreamHandle stream) {
  Locked l;
  return l->stream(stream).queue.empty() ? Status::success : Status::not_ready;
}
Status stream_wait_event(StreamHandle stream, EventHandle event) {
  Locked l;
  EventPtr e;
  if (Status s = find(l.m, event, &e); s != Status::success) return s;
  l->push(stream, Task{"wait", {}, e, e->recorded, true, {}, false});
  return Status::success;
}
Status stream_is_capturing(StreamHandle, bool* yes) {
  *yes = false;
  return Status::success;
}

Status event_create(EventHandle* event, bool) {
  Locked l;
  auto e = std::make_shared<Event>();
  e->device = Machine::device();
  *event = reinterpret_cast<EventHandle>(e.get());
  l->events[*event] = std::move(e);
  return Status::success;
}
Status event_destroy(EventHandle event) {
  Locked l;
  return l->events.erase(event) ? Status::success : Status::invalid_value;
}
Status event_record(EventHandle event, StreamHandle stream) {
  Locked l;
  EventPtr e;
  if (Status s = find(l.m, event, &e); s != Status::success) return s;
  if (l->stream(stream).device != e->device) return Status::invalid_handle;
  l->push(stream, Task{"record", {}, e, ++e->recorded, false, {}, false});
  return Status::success;
}
Status event_query(EventHandle event) {
  Locked l;
  EventPtr e;
  if (Status s = find(l.m, event, &e); s != Status::success) return s;
  return l->query(e) ? Status::success : Status::not_ready;
}
Status event_synchronize(EventHandle event) {
  Locked l;
  ++l->counters.synchronizations;
  EventPtr e;
  if (Status s = find(l.m, event, &e); s != Status::success) return s;
  l->finish(e);
  return Status::success;
}
Status event_elapsed(float* milliseconds, EventHandle begin, EventHandle end) {
  Locked l;
  EventPtr a, b;
  if (find(l.m, begin, &a) != Status::success || find(l.m, end, &b) != Status::success) return Status::invalid_value;
  if (a->done < a->recorded || b->done < b->recorded) return Status::not_ready;
  *milliseconds = std::chrono::duration<float, std::milli>(b->time - a->time).count();
  return Status::success;
}

Status launch(const char*, const void*, const LaunchShape&, void**) { return Status::not_supported; }
Counters counters() { return Locked()->counters; }

}  // namespace rt
}  // namespace vesta::cuda
