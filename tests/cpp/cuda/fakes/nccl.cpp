// An NCCL for the emulated device: the functions that cuda/nccl calls, with their published meanings, between processes
// of one machine. Becomes build/fakes/libnccl.so.2.
//
// A communicator is a piece of shared memory (a memfd that the others open through /proc) with a ring of bytes from
// each rank to each. An operation is a task of the emulated stream that is polled: it writes to the rings what fits and
// reads what is there, and is done when all of it is. So operations wait for what their stream has queued before, as on
// a GPU, and a rank that does not come leaves the others' streams hanging, as NCCL does. Ranks whose calls differ hang
// too.
//
// FAKE_NCCL, a comma-separated list, makes a process fail: `init_hang`, `init_error`, `abort_hang`, `old` (its
// version), and with the number of an operation of the process, from 1, `hang@3`, `async_error@3`, `call_error@3`.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vesta/core/base/half.h>
#include <vesta/cuda/nccl/nccl_abi.h>

namespace {
namespace nccl = vesta::cuda::nccl;
using nccl::Result;

constexpr int kMostRanks = 8;
constexpr uint64_t kRing = 256 << 10;  // bytes from one rank to another that are under way
constexpr size_t kDirect = 32 << 10;  // a reduction up to here goes from each to each, in one step

struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
};
struct Segment {
  std::atomic<int> joined;
  Ring rings[kMostRanks][kMostRanks];
  char* data(int from, int to) {
    return reinterpret_cast<char*>(this) + sizeof(Segment) + size_t(from * kMostRanks + to) * kRing;
  }
};
constexpr size_t kSegmentBytes = sizeof(Segment) + kMostRanks * kMostRanks * kRing;

struct Id {  // what a ncclUniqueId holds
  int pid, fd;
  uint64_t token;
};

std::atomic<uint64_t> operations{0}, groups{0};
std::atomic<void*> last_stream{nullptr};

bool told(const std::string& what) {
  const char* text = std::getenv("FAKE_NCCL");
  return text && ("," + std::string(text) + ",").find("," + what + ",") != std::string::npos;
}

// ---- The emulated device ----

void* emulation(const char* symbol) {
  void* library = dlopen(std::getenv("VESTA_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  void* found = dlsym(library, symbol);
  dlclose(library);
  return found;
}
void enqueue(void* stream, bool (*poll)(void*), void* argument) {
  using Enqueue = void (*)(void*, const char*, bool (*)(void*), void*);
  static auto* call = reinterpret_cast<Enqueue>(emulation("vesta_emulation_enqueue_polled"));
  call(stream, "fake_nccl", poll, argument);
}
void progress() {
  static auto* call = reinterpret_cast<void (*)()>(emulation("vesta_emulation_progress"));
  call();
}

/// A thread that advances operations while no thread of the process waits for the device; it lives while there are
/// communicators.
class Ticker {
 public:
  void join() {
    std::lock_guard guard(lock_);
    if (users_++ == 0) stop_ = false, thread_ = std::thread([this] { run(); });
  }
  void leave() {
    std::thread ended;
    {
      std::lock_guard guard(lock_);
      if (--users_) return;
      stop_ = true;
      ended.swap(thread_);
      wake_.notify_all();
    }
    ended.join();
  }
  void begin() {
    std::lock_guard guard(lock_);
    ++flying_;
    wake_.notify_all();
  }
  void end() { --flying_; }

 private:
  void run() {
    std::unique_lock guard(lock_);
    while (!stop_) {
      if (!flying_) {
        wake_.wait(guard);
        continue;
      }
      guard.unlock();
      progress();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      guard.lock();
    }
  }
  std::mutex lock_;
  std::condition_variable wake_;
  std::thread thread_;
  int users_ = 0;
  bool stop_ = false;
  std::atomic<int> flying_{0};
};
Ticker& ticker() {
  static Ticker* t = new Ticker;
  return *t;
}

std::mutex own_lock;
std::map<uint64_t, int>& own_ids() {  // the memfds of ids that were made here, until all have joined
  static auto* map = new std::map<uint64_t, int>;
  return *map;
}
void close_own(uint64_t token) {
  std::lock_guard guard(own_lock);
  auto at = own_ids().find(token);
  if (at == own_ids().end()) return;
  close(at->second);
  own_ids().erase(at);
}

struct Comm {
  Segment* segment = nullptr;
  int rank = 0, size = 1;
  uint64_t token = 0;
  bool hangs_in_init = false;
  std::atomic<bool> aborted{false}, stuck{false}, in_call{false};
  std::atomic<int> error{0}, flying{0}, settling{0};
  std::vector<std::pair<int, double>> factors;  // by operator made here: type and factor

  bool ready() {
    if (hangs_in_init || segment->joined < size) return false;
    close_own(token);
    return true;
  }
  ~Comm() {
    if (segment) munmap(segment, kSegmentBytes);
    close_own(token);
  }
};
using CommPtr = std::shared_ptr<Comm>;
Comm& of(nccl::Comm c) { return **static_cast<CommPtr*>(c); }

/// A call on a communicator: two at a time end the process, since NCCL's behaviour is undefined then.
class InCall {
 public:
  explicit InCall(Comm& c) : comm_(c) {
    if (!comm_.in_call.exchange(true)) return;
    std::fprintf(stderr, "fake NCCL: two threads call one communicator at a time\n");
    std::abort();
  }
  ~InCall() { comm_.in_call = false; }

 private:
  Comm& comm_;
};

// ---- Operations ----

struct Head {
  uint32_t kind, type;
  uint64_t bytes;
};
struct Transfer {
  int peer;
  char* data;
  Head head;
  uint64_t at = 0;  // bytes done, the head's first
  uint64_t total() const { return sizeof(Head) + head.bytes; }
  bool done() const { return at == total(); }
};
struct Step {
  std::function<void()> begin;
  std::vector<Transfer> sends, receives;
  std::function<void()> end;
};
struct Operation {
  CommPtr comm;
  std::vector<Step> steps;
  std::vector<std::vector<char>> scratch;
  size_t step = 0;
  bool begun = false, hangs = false;

  char* make(size_t bytes) { return scratch.emplace_back(bytes).data(); }
};

void push(Comm& c, Transfer& t) {
  Ring& ring = c.segment->rings[c.rank][t.peer];
  char* data = c.segment->data(c.rank, t.peer);
  uint64_t to = ring.written.load(std::memory_order_relaxed), from = ring.read.load(std::memory_order_acquire);
  while (!t.done() && to - from < kRing) {
    const bool head = t.at < sizeof(Head);
    const char* source = head ? reinterpret_cast<char*>(&t.head) + t.at : t.data + (t.at - sizeof(Head));
    const uint64_t left = head ? sizeof(Head) - t.at : t.total() - t.at;
    const uint64_t n = std::min({left, kRing - (to - from), kRing - to % kRing});
    std::memcpy(data + to % kRing, source, n);
    to += n, t.at += n;
  }
  ring.written.store(to, std::memory_order_release);
}

void pull(Comm& c, Transfer& t) {
  Ring& ring = c.segment->rings[t.peer][c.rank];
  char* data = c.segment->data(t.peer, c.rank);
  uint64_t from = ring.read.load(std::memory_order_relaxed), to = ring.written.load(std::memory_order_acquire);
  while (!t.done() && from < to) {
    if (t.at == 0) {
      if (to - from < sizeof(Head)) break;
      Head came;
      for (size_t i = 0; i < sizeof came; ++i) reinterpret_cast<char*>(&came)[i] = data[(from + i) % kRing];
      if (std::memcmp(&came, &t.head, sizeof came) != 0) {
        c.stuck = true;
        break;
      }
      from += sizeof came, t.at = sizeof came;
      continue;
    }
    const uint64_t n = std::min({t.total() - t.at, to - from, kRing - from % kRing});
    std::memcpy(t.data + (t.at - sizeof(Head)), data + from % kRing, n);
    from += n, t.at += n;
  }
  ring.read.store(from, std::memory_order_release);
}

/// Advances transfers, those of one peer in order; returns whether all are done.
bool move(Comm& c, std::vector<Transfer>& transfers, void (*one)(Comm&, Transfer&)) {
  bool all = true, busy[kMostRanks] = {};
  for (Transfer& t : transfers) {
    if (busy[t.peer]) continue;
    if (!t.done()) one(c, t);
    if (!t.done()) all = false, busy[t.peer] = true;
  }
  return all;
}

bool go_on(Operation& op) {
  Comm& c = *op.comm;
  while (op.step < op.steps.size()) {
    if (c.aborted) return true;
    if (c.stuck || op.hangs || c.error) return false;
    Step& s = op.steps[op.step];
    if (!op.begun && s.begin) s.begin();
    op.begun = true;
    const bool sent = move(c, s.sends, push), received = move(c, s.receives, pull);
    if (!sent || !received) return false;
    if (s.end) s.end();
    ++op.step;
    op.begun = false;
  }
  return true;
}

bool poll(void* argument) {
  auto* op = static_cast<Operation*>(argument);
  if (!go_on(*op)) return false;
  --op->comm->flying;
  ticker().end();
  delete op;
  return true;
}

// ---- Reductions ----

template <class F>
void visit(int type, F f) {
  switch (type) {
    case nccl::int8: return f(int8_t());
    case nccl::uint8: return f(uint8_t());
    case nccl::int32: return f(int32_t());
    case nccl::uint32: return f(uint32_t());
    case nccl::int64: return f(int64_t());
    case nccl::uint64: return f(uint64_t());
    case nccl::float16: return f(vesta::Half());
    case nccl::float32: return f(float());
    case nccl::float64: return f(double());
    default: return f(vesta::BFloat16());
  }
}
size_t size_of(int type) {
  size_t n = 0;
  visit(type, [&](auto v) { n = sizeof v; });
  return n;
}

template <class T>
using wide_t = std::conditional_t<std::is_class_v<T>, float, std::conditional_t<std::is_integral_v<T>, uint64_t, T>>;

template <class T>
wide_t<T> wide(T v) {
  if constexpr (std::is_class_v<T>) return float(v);
  else return wide_t<T>(v);  // integers wrap
}

template <class T>
T combined(const std::vector<const char*>& from, size_t i, int op) {
  auto value = [&](size_t r) {
    T v;
    std::memcpy(&v, from[r] + i * sizeof(T), sizeof v);
    return v;
  };
  auto less = [](T a, T b) {
    if constexpr (std::is_class_v<T>) return float(a) < float(b);
    else return a < b;
  };
  if (op == nccl::op_min || op == nccl::op_max) {
    T best = value(0);
    for (size_t r = 1; r < from.size(); ++r) {
      const T v = value(r);
      if (op == nccl::op_min ? less(v, best) : less(best, v)) best = v;
    }
    return best;
  }
  wide_t<T> sum = wide(value(0));
  for (size_t r = 1; r < from.size(); ++r) {
    if (op == nccl::op_prod) sum *= wide(value(r));
    else sum += wide(value(r));
  }
  if (op == nccl::op_avg) sum /= wide_t<T>(from.size());
  if constexpr (std::is_class_v<T>) return T(float(sum));
  else return T(sum);
}

/// Reduces the ranks' values in their order, so that all get the same bits.
void combine(char* to, const std::vector<const char*>& from, size_t count, int type, int op) {
  visit(type, [&]<class T>(T) {
    for (size_t i = 0; i < count; ++i) {
      const T v = combined<T>(from, i, op);
      std::memcpy(to + i * sizeof v, &v, sizeof v);
    }
  });
}

void scale(char* data, size_t count, int type, double factor) {
  visit(type, [&]<class T>(T) {
    for (size_t i = 0; i < count; ++i) {
      T v;
      std::memcpy(&v, data + i * sizeof v, sizeof v);
      if constexpr (std::is_class_v<T>) v = T(float(v) * float(factor));
      else v = T(v * T(factor));
      std::memcpy(data + i * sizeof v, &v, sizeof v);
    }
  });
}

/// One NCCL call, until its group ends.
struct Call {
  enum Kind : uint32_t { all_reduce = 1, broadcast, reduce, all_gather, reduce_scatter, send, receive } kind;
  CommPtr comm;
  void* stream;
  const char* from;
  char* to;
  size_t count;
  int type, op = 0, peer = 0;
};

/// The builder of the steps of one call (messages have their own).
class Builder {
 public:
  Builder(Operation& op, const Call& call)
      : o(op), k(call), c(*call.comm), item(size_of(call.type)), bytes(call.count * item), reduction(call.op) {
    if (reduction < nccl::num_ops) return;
    const auto [type, factor] = c.factors[size_t(reduction - nccl::num_ops)];
    const size_t all = bytes * (k.kind == Call::reduce_scatter ? size_t(c.size) : 1);
    char* mine = o.make(all);
    const char* given = k.from;
    begin = [=, count = all / item, f = factor, t = k.type] {
      std::memcpy(mine, given, count * size_of(t));
      scale(mine, count, t, f);
    };
    k.from = mine;
    reduction = nccl::op_sum;
  }
  void build() {
    switch (k.kind) {
      case Call::all_reduce: return bytes <= kDirect || c.size == 1 ? reduce_to(-1) : reduce_in_parts();
      case Call::reduce: return reduce_to(k.peer);
      case Call::broadcast: return broadcast();
      case Call::all_gather: return all_gather();
      default: return reduce_scatter();
    }
  }

 private:
  Transfer transfer(int peer, const char* data, size_t n) {
    return {peer, const_cast<char*>(data), {k.kind, uint32_t(k.type), n}};
  }
  Step& step() {
    Step& s = o.steps.emplace_back();
    s.begin = std::exchange(begin, nullptr);
    return s;
  }
  /// Makes all ranks send everything to the root, or to all.
  void reduce_to(int root) {
    Step& s = step();
    std::vector<const char*> from;
    for (int r = 0; r < c.size; ++r) {
      const bool wanted = root < 0 || root == c.rank;
      if (r != c.rank && (root < 0 || root == r)) s.sends.push_back(transfer(r, k.from, bytes));
      if (wanted) from.push_back(r == c.rank ? k.from : o.make(bytes));
      if (wanted && r != c.rank) s.receives.push_back(transfer(r, from.back(), bytes));
    }
    if (!from.empty()) s.end = [k = k, from, op = reduction] { combine(k.to, from, k.count, k.type, op); };
  }
  /// Makes each rank reduce one part and send it to all.
  void reduce_in_parts() {
    auto first = [&](int r) { return k.count * size_t(r) / size_t(c.size); };
    Step& s = step();
    const size_t mine = first(c.rank), n = first(c.rank + 1) - mine;
    std::vector<const char*> from;
    for (int r = 0; r < c.size; ++r) {
      if (r == c.rank) {
        from.push_back(k.from + mine * item);
        continue;
      }
      s.sends.push_back(transfer(r, k.from + first(r) * item, (first(r + 1) - first(r)) * item));
      from.push_back(o.make(n * item));
      s.receives.push_back(transfer(r, from.back(), n * item));
    }
    s.end = [k = k, from, n, to = k.to + mine * item, op = reduction] { combine(to, from, n, k.type, op); };
    Step& second = step();
    for (int r = 0; r < c.size; ++r) {
      if (r == c.rank) continue;
      second.sends.push_back(transfer(r, k.to + mine * item, n * item));
      second.receives.push_back(transfer(r, k.to + first(r) * item, (first(r + 1) - first(r)) * item));
    }
  }
  void broadcast() {
    Step& s = step();
    for (int r = 0; r < c.size && c.rank == k.peer; ++r) {
      if (r != c.rank) s.sends.push_back(transfer(r, k.from, bytes));
    }
    if (c.rank != k.peer) s.receives.push_back(transfer(k.peer, k.to, bytes));
    else s.end = [k = k, n = bytes] { std::memmove(k.to, k.from, n); };
  }
  void all_gather() {
    Step& s = step();
    for (int r = 0; r < c.size; ++r) {
      if (r == c.rank) continue;
      s.sends.push_back(transfer(r, k.from, bytes));
      s.receives.push_back(transfer(r, k.to + size_t(r) * bytes, bytes));
    }
    s.end = [k = k, n = bytes, r = size_t(c.rank)] { std::memmove(k.to + r * n, k.from, n); };
  }
  void reduce_scatter() {
    Step& s = step();
    std::vector<const char*> from;
    for (int r = 0; r < c.size; ++r) {
      if (r == c.rank) {
        from.push_back(k.from + size_t(r) * bytes);
        continue;
      }
      s.sends.push_back(transfer(r, k.from + size_t(r) * bytes, bytes));
      from.push_back(o.make(bytes));
      s.receives.push_back(transfer(r, from.back(), bytes));
    }
    s.end = [k = k, from, op = reduction] { combine(k.to, from, k.count, k.type, op); };
  }

  Operation& o;
  Call k;
  Comm& c;
  size_t item, bytes;
  int reduction;
  std::function<void()> begin;
};

/// Makes one operation of all messages of a group on a communicator; those to this rank itself are copied.
void build_messages(Operation& o, const std::vector<Call>& calls) {
  Step& s = o.steps.emplace_back();
  std::vector<Call> to_self, from_self;
  for (const Call& k : calls) {
    const bool sends = k.kind == Call::send;
    if (k.peer == k.comm->rank) {
      (sends ? to_self : from_self).push_back(k);
      continue;
    }
    const size_t bytes = k.count * size_of(k.type);
    (sends ? s.sends : s.receives)
        .push_back({k.peer, sends ? const_cast<char*>(k.from) : k.to, {Call::send, uint32_t(k.type), bytes}});
  }
  s.end = [=] {
    for (size_t i = 0; i < to_self.size() && i < from_self.size(); ++i) {
      std::memmove(from_self[i].to, to_self[i].from, to_self[i].count * size_of(to_self[i].type));
    }
  };
}

// ---- Groups of calls ----

thread_local int depth = 0;
thread_local std::vector<Call> collected;

void launch(const std::vector<Call>& calls) {
  auto op = std::make_unique<Operation>();
  op->comm = calls[0].comm;
  Comm& c = *op->comm;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string at = "@" + std::to_string(++operations);
    op->hangs = op->hangs || told("hang" + at);
    if (told("async_error" + at)) c.error = nccl::remote_error;
  }
  if (calls[0].kind >= Call::send) build_messages(*op, calls);
  else Builder(*op, calls[0]).build();
  ++c.flying;
  ticker().begin();
  last_stream = calls[0].stream;
  enqueue(calls[0].stream, poll, op.release());
}

Result end_group() {
  if (--depth) return nccl::success;
  std::vector<Call> calls = std::move(collected);
  collected.clear();
  std::vector<Call> messages;
  for (const Call& k : calls) {
    if (told("call_error@" + std::to_string(operations + 1))) return nccl::internal_error;
    if (k.kind >= Call::send) messages.push_back(k);
    else launch({k});
  }
  while (!messages.empty()) {  // all of one communicator at once
    std::vector<Call> together, rest;
    for (const Call& k : messages) (k.comm == messages[0].comm ? together : rest).push_back(k);
    launch(together);
    messages = std::move(rest);
  }
  if (calls.empty()) return nccl::success;
  calls[0].comm->settling = 2;
  return nccl::in_progress;
}

Result call(Call::Kind kind, nccl::Comm comm, void* stream, const void* from, void* to, size_t count, int type,
            int op = 0, int peer = 0) {
  Comm& c = of(comm);
  InCall in(c);
  if (peer < 0 || peer >= c.size) return nccl::invalid_argument;
  if (!c.ready()) return nccl::invalid_usage;
  ++depth;
  collected.push_back({kind, *static_cast<CommPtr*>(comm), stream, static_cast<const char*>(from),
                       static_cast<char*>(to), count, type, op, peer});
  return end_group();
}
}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT uint64_t fake_nccl_operations() { return operations; }
EXPORT uint64_t fake_nccl_groups() { return groups; }
EXPORT void* fake_nccl_stream() { return last_stream; }
EXPORT Result ncclGetVersion(int* to) {
  *to = told("old") ? 21200 : 22809;
  return nccl::success;
}
EXPORT const char* ncclGetErrorString(Result r) {
  switch (r) {
    case nccl::success: return "no error";
    case nccl::internal_error: return "internal error";
    case nccl::invalid_argument: return "invalid argument";
    case nccl::invalid_usage: return "invalid usage";
    case nccl::remote_error: return "remote process exited or there was a network error";
    case nccl::in_progress: return "NCCL operation in progress";
    default: return "unhandled error";
  }
}
EXPORT const char* ncclGetLastError(nccl::Comm) { return ""; }
EXPORT Result ncclGetUniqueId(nccl::UniqueId* to) {
  Id id{getpid(), memfd_create("fake_nccl", MFD_CLOEXEC), 0};
  if (id.fd < 0 || ftruncate(id.fd, off_t(kSegmentBytes)) != 0) return nccl::system_error;
  if (getrandom(&id.token, sizeof id.token, 0) != sizeof id.token) return nccl::system_error;
  std::memset(to, 0, sizeof *to);
  std::memcpy(to, &id, sizeof id);
  std::lock_guard guard(own_lock);
  own_ids()[id.token] = id.fd;
  return nccl::success;
}
EXPORT Result ncclCommInitRankConfig(nccl::Comm* to, int size, nccl::UniqueId given, int rank, nccl::Config* config) {
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size || config->magic != 0xcafebeef) {
    return nccl::invalid_argument;
  }
  if (told("init_error")) return nccl::system_error;
  Id id;
  std::memcpy(&id, &given, sizeof id);
  const std::string path = "/proc/" + std::to_string(id.pid) + "/fd/" + std::to_string(id.fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nccl::system_error;
  void* p = mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return nccl::system_error;
  auto c = std::make_shared<Comm>();
  c->segment = static_cast<Segment*>(p);
  c->rank = rank, c->size = size, c->token = id.token;
  c->hangs_in_init = told("init_hang");
  if (!c->hangs_in_init) ++c->segment->joined;
  ticker().join();
  *to = new CommPtr(std::move(c));
  return nccl::in_progress;
}
EXPORT Result ncclCommGetAsyncError(nccl::Comm comm, Result* to) {
  Comm& c = of(comm);
  InCall in(c);
  *to = c.error ? Result(c.error.load()) : nccl::success;
  if (!c.error && (!c.ready() || (c.settling > 0 && --c.settling > 0))) *to = nccl::in_progress;
  if (!c.error && c.settling < 0) *to = c.flying ? nccl::in_progress : nccl::success;  // being finalized
  return nccl::success;
}
EXPORT Result ncclCommFinalize(nccl::Comm comm) {
  Comm& c = of(comm);
  InCall in(c);
  c.settling = -1;
  return c.flying ? nccl::in_progress : nccl::success;
}
EXPORT Result ncclCommDestroy(nccl::Comm comm) {
  delete static_cast<CommPtr*>(comm);
  ticker().leave();
  return nccl::success;
}
EXPORT Result ncclCommAbort(nccl::Comm comm) {
  if (told("abort_hang")) {
    for (;;) pause();
  }
  of(comm).aborted = true;
  progress();
  return ncclCommDestroy(comm);
}
EXPORT Result ncclGroupStart() {
  ++depth;
  return nccl::success;
}
EXPORT Result ncclGroupEnd() {
  groups += depth == 1;
  return end_group();
}
EXPORT Result ncclAllReduce(const void* from, void* to, size_t n, int type, int op, nccl::Comm c, void* s) {
  return call(Call::all_reduce, c, s, from, to, n, type, op);
}
EXPORT Result ncclBroadcast(const void* from, void* to, size_t n, int type, int root, nccl::Comm c, void* s) {
  return call(Call::broadcast, c, s, from, to, n, type, 0, root);
}
EXPORT Result ncclReduce(const void* from, void* to, size_t n, int type, int op, int root, nccl::Comm c, void* s) {
  return call(Call::reduce, c, s, from, to, n, type, op, root);
}
EXPORT Result ncclAllGather(const void* from, void* to, size_t n, int type, nccl::Comm c, void* s) {
  return call(Call::all_gather, c, s, from, to, n, type);
}
EXPORT Result ncclReduceScatter(const void* from, void* to, size_t n, int type, int op, nccl::Comm c, void* s) {
  return call(Call::reduce_scatter, c, s, from, to, n, type, op);
}
EXPORT Result ncclSend(const void* from, size_t n, int type, int peer, nccl::Comm c, void* s) {
  return call(Call::send, c, s, from, nullptr, n, type, 0, peer);
}
EXPORT Result ncclRecv(void* to, size_t n, int type, int peer, nccl::Comm c, void* s) {
  return call(Call::receive, c, s, nullptr, to, n, type, 0, peer);
}
EXPORT Result ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int residence, nccl::Comm comm) {
  if (residence != nccl::scalar_host_immediate) return nccl::invalid_argument;
  Comm& c = of(comm);
  InCall in(c);
  double factor = 0;
  visit(type, [&]<class T>(T v) {
    std::memcpy(&v, scalar, sizeof v);
    if constexpr (std::is_class_v<T>) factor = double(float(v));
    else factor = double(v);
  });
  c.factors.emplace_back(type, factor);
  *op = nccl::num_ops + int(c.factors.size()) - 1;
  return nccl::success;
}
EXPORT Result ncclRedOpDestroy(int, nccl::Comm) { return nccl::success; }
