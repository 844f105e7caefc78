// The recorder: the threads' logs, the sessions, and the switch.
#include <vesta/core/dispatch/profiler.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include <vesta/core/dispatch/memory_watch.h>
#include <vesta/core/dispatch/profiled_call.h>

namespace vesta::profiler {

Port port;

namespace {

constexpr uint32_t kNone = Event::kNone;

/// What an open event needs to know that a closed one does not.
struct Frame {
  uint32_t index;
  uint8_t excluded;  // the thread's layers when the op was called
  const OpBase* op;
};

/// Numbers by names; one is found without making a string.
struct HashName {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Names = std::unordered_map<std::string, uint32_t, HashName, std::equal_to<>>;

/// A thread's events. Its thread appends; whoever ends a session reads.
struct Log {
  std::mutex mutex;
  uint64_t generation = 0;
  Trace trace;
  std::vector<Frame> frames;
  Names names, steps;  // of steps of backward: by the name of their nodes

  void restart(uint64_t g) {
    generation = g;
    const int64_t thread = trace.thread;
    trace = Trace{};
    trace.thread = thread;
    frames.clear();
    names.clear(), steps.clear();
  }
  /// Returns the number of a name, with PyTorch's prefix for a step of backward.
  uint32_t intern(std::string_view text, bool step) {
    Names& known = step ? steps : names;
    if (const auto found = known.find(text); found != known.end()) return found->second;
    const auto number = uint32_t(trace.names.size());
    trace.names.push_back((step ? "autograd::engine::evaluate_function: " : "") + std::string(text));
    known.emplace(text, number);
    return number;
  }
};

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Log>> logs;
  std::vector<OpBase*> ops;
  std::unordered_map<uint64_t, int64_t> sessions;  // number: when it began
  std::unordered_set<uint64_t> watching;           // those of them that asked for memory
  uint64_t last_session = 0;
};
Registry& registry() {
  static auto* r = new Registry;  // outlives threads that end during exit
  return *r;
}

/// Grows when the first session begins; odd while any runs.
std::atomic<uint64_t> generation{0};
bool is_running(uint64_t g) { return (g & 1) != 0; }

thread_local std::shared_ptr<Log> own_log;
constinit thread_local bool ended __attribute__((tls_model("initial-exec"))) = false;
struct Ending {  // the thread's other objects may call ops when they die, after its log is gone
  ~Ending() {
    own_log.reset();
    ended = true;
  }
};

/// Returns the calling thread's log, or null in a thread that is ending.
Log* log_of_thread() {
  if (Log* log = own_log.get()) [[likely]]
    return log;
  if (ended) return nullptr;
  static thread_local Ending ending;
  (void)&ending;
  auto log = std::make_shared<Log>();
  log->trace.thread = syscall(SYS_gettid);
  {
    std::lock_guard lock(registry().mutex);
    registry().logs.push_back(log);
  }
  own_log = std::move(log);
  return own_log.get();
}

void show(Registry& r, bool on) {
  for (OpBase* op : r.ops) op->show_profiler(on);
  if (port.switched) port.switched(on);
}

/// Appends an event to a locked log.
uint32_t append(Log& log, Kind kind, const OpBase* op) {
  const auto index = uint32_t(log.trace.events.size());
  log.frames.reserve(log.frames.size() + 1);
  Event& e = log.trace.events.emplace_back();
  e.kind = kind;
  e.parent = log.frames.empty() ? kNone : log.frames.back().index;
  e.operands = uint32_t(log.trace.shapes.size());
  e.memory = Storage::thread_balance();
  if (port.node_counter) e.first_node = e.last_node = port.node_counter();
  log.frames.push_back({index, layer_state.excluded, op});
  return index;
}

/// Closes an event of a locked log, and those within it that are open still.
void finish(Log& log, uint32_t index, int64_t time, bool failed) {
  const auto frame = std::ranges::find(log.frames, index, &Frame::index);
  if (frame == log.frames.end()) return;  // one around it was closed before
  const int64_t balance = Storage::thread_balance();
  for (auto f = frame; f != log.frames.end(); ++f) {
    Event& e = log.trace.events[f->index];
    e.end = time, e.memory = balance - e.memory, e.open = false, e.failed = failed;
    if (e.kind != Kind::node && port.node_counter) e.last_node = port.node_counter();
  }
  log.frames.erase(frame, log.frames.end());
}

/// Returns the block of a tensor of event `index`; one that is seen first is noted in the locked log. It existed before
/// unless it is a result.
uint32_t note_block(Trace& trace, const Tensor& t, uint32_t index, bool result) {
  const Storage* storage = t.impl()->storage().get();
  if (!storage) return 0;
  const Block block = block_of(*storage);
  if (block.is_new)
    trace.memory.push_back({result ? now() : 0, int64_t(storage->nbytes()), block.number, index, !result});
  return block.number;
}

/// Appends a shape to a locked log. Those of one event follow each other: nothing else happens in between.
void add_shape(Trace& trace, const Tensor& t, int parameter, uint32_t index, bool result) {
  const auto at = uint32_t(trace.sizes.size());
  for (int64_t size : t.sizes()) trace.sizes.push_back(size);
  const uint32_t block = watches_memory() ? note_block(trace, t, index, result) : 0;
  trace.shapes.push_back({at, uint8_t(t.dim()), t.dtype(), int16_t(parameter), block});
  if (t.device().type() != DeviceType::cpu) trace.events[index].on_device = true;
}

/// Returns whether a log that the calling thread locked belongs to the sessions that run, and makes it so.
bool current(Log& log) {
  const uint64_t g = generation.load(std::memory_order_relaxed);
  if (!is_running(g)) return false;
  if (log.generation != g) log.restart(g);
  return true;
}

/// The token of an open event: the sessions, the log and the event.
uint64_t token_of(const Log& log, uint32_t index) {
  return (log.generation & 0xffff) << 48 | uint64_t(log.trace.thread & 0xffff) << 32 | index;
}
/// Returns the locked log of an open event of this thread; null where its session has ended.
std::unique_lock<std::mutex> lock_for(uint64_t token, Log*& log) {
  log = token ? own_log.get() : nullptr;
  if (!log) return {};
  std::unique_lock lock(log->mutex);
  if (log->generation != generation.load(std::memory_order_relaxed) || token_of(*log, uint32_t(token)) != token)
    log = nullptr;
  return lock;
}

/// Ends what is open in a copy of a log, and leaves what began before `since` out.
void trim(Trace& trace, int64_t since, int64_t time) {
  std::vector<uint32_t> moved(trace.events.size(), kNone);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < trace.events.size(); ++i) {
    Event e = trace.events[i];
    if (e.start < since) continue;
    if (e.parent != kNone) e.parent = moved[e.parent];
    if (e.open) e.end = std::max(time, e.start), e.memory = 0;
    moved[i] = kept;
    trace.events[kept++] = e;
  }
  trace.events.resize(kept);
  for (MemoryEvent& m : trace.memory) {
    m.event = m.event < moved.size() ? moved[m.event] : kNone;
    if (m.time < since) m.time = since, m.existed = m.bytes > 0;
  }
}

/// Copies or takes the traces of the sessions that run, from `since` on. The registry is locked.
std::vector<Trace> traces(Registry& r, uint64_t of, int64_t since, bool take) {
  std::vector<Trace> all;
  const int64_t time = now();
  for (const auto& log : r.logs) {
    std::lock_guard lock(log->mutex);
    if (log->generation != of || (log->trace.events.empty() && log->trace.memory.empty())) continue;
    if (take) {
      const int64_t thread = log->trace.thread;
      all.push_back(std::exchange(log->trace, Trace{}));
      log->trace.thread = thread;
    } else {
      all.push_back(log->trace);
    }
    trim(all.back(), since, time);
    if (all.back().events.empty() && all.back().memory.empty()) all.pop_back();
  }
  return all;
}

}  // namespace

int64_t now() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

bool running() noexcept { return is_running(generation.load(std::memory_order_relaxed)); }

Peaks peaks() {
  static const Peaks measured = port.measure_peaks ? port.measure_peaks() : Peaks{};
  return measured;
}

void note_memory(uint64_t g, uint32_t block, int64_t bytes) noexcept try {
  Log* log = log_of_thread();
  if (!log) return;
  std::lock_guard lock(log->mutex);
  if (!current(*log) || log->generation != g) return;
  const uint32_t index = log->frames.empty() ? kNone : log->frames.back().index;
  log->trace.memory.push_back({now(), bytes, block, index, false});
} catch (...) {}

uint32_t block_of(const Tensor& t) {
  return t.defined() && t.impl()->storage() ? block_of(*t.impl()->storage()).number : 0;
}

uint64_t start(bool memory) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  if (r.sessions.empty()) {
    std::erase_if(r.logs, [](const auto& log) { return log.use_count() == 1; });  // of threads that have ended
    generation.fetch_add(1, std::memory_order_relaxed);
    show(r, true);
  }
  r.sessions[++r.last_session] = now();
  if (memory) {
    r.watching.insert(r.last_session);
    watch_memory(true, generation.load(std::memory_order_relaxed));
  }
  return r.last_session;
}

std::vector<Trace> snapshot(uint64_t session) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.sessions.find(session);
  VESTA_CHECK(found != r.sessions.end(), runtime, "profiler: expected a session that runs, got number ", session, ".");
  return traces(r, generation.load(std::memory_order_relaxed), found->second, false);
}

std::vector<Trace> stop(uint64_t session) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.sessions.find(session);
  VESTA_CHECK(found != r.sessions.end(), runtime, "profiler: expected a session that runs, got number ", session, ".");
  const int64_t since = found->second;
  const uint64_t g = generation.load(std::memory_order_relaxed);
  r.sessions.erase(found);
  if (r.watching.erase(session) && r.watching.empty()) watch_memory(false, g);
  if (!r.sessions.empty()) return traces(r, g, since, false);
  show(r, false);
  generation.store(g + 1, std::memory_order_relaxed);
  return traces(r, g, since, true);
}

void add_ops(std::span<OpBase* const> ops) {
  Registry& r = registry();
  static const bool watches_forks = [] {
    // A forked child records nothing: its events would reach nobody.
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] {
                     Registry& own = registry();
                     own.mutex.unlock();
                     const uint64_t g = generation.load(std::memory_order_relaxed);
                     if (!is_running(g)) return;
                     own.sessions.clear();
                     own.watching.clear();
                     watch_memory(false, g);
                     generation.store(g + 1, std::memory_order_relaxed);
                     show(own, false);
                   });
    return true;
  }();
  (void)watches_forks;
  std::lock_guard lock(r.mutex);
  r.ops.insert(r.ops.end(), ops.begin(), ops.end());
  if (running()) show(r, true);
}

uint64_t open(Kind kind, std::string_view name, uint32_t tag, uint64_t node) noexcept try {
  if (!running()) return 0;
  Log* log = log_of_thread();
  if (!log) return 0;
  const bool called_from_program = kind == Kind::part || kind == Kind::layer;
  const int32_t place = called_from_program && port.place ? port.place() : -1;
  std::lock_guard lock(log->mutex);
  if (!current(*log)) return 0;
  const uint32_t text = log->intern(name, kind == Kind::function);
  const uint32_t index = append(*log, kind, nullptr);
  Event& e = log->trace.events[index];
  e.name = text, e.tag = tag, e.place = place;
  if (kind == Kind::node || kind == Kind::function) e.first_node = node, e.last_node = node + 1;
  e.start = now();
  return token_of(*log, index);
} catch (...) {
  return 0;  // no memory for it: the event is missing
}

void close(uint64_t token, bool failed) noexcept {
  const int64_t time = token ? now() : 0;
  Log* log = nullptr;
  const auto lock = lock_for(token, log);
  if (log) finish(*log, uint32_t(token), time, failed);
}

void note(uint64_t token, std::span<const Tensor> tensors, bool results) noexcept try {
  Log* log = nullptr;
  const auto lock = lock_for(token, log);
  if (!log) return;
  Event& e = log->trace.events[uint32_t(token)];
  (results ? e.results : e.operands) = uint32_t(log->trace.shapes.size());
  uint16_t& count = results ? e.num_results : e.num_operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    add_shape(log->trace, tensors[i], int(i), uint32_t(token), results);
    ++count;
  }
} catch (...) {}

OpenCall::OpenCall(const OpBase& op) noexcept try {
  if (!running()) return;
  Log* log = log_of_thread();
  if (!log) return;
  const bool here = log->generation == generation.load(std::memory_order_relaxed) && !log->frames.empty();
  // A layer calls the op again, below itself.
  if (here && log->frames.back().op == &op && log->frames.back().excluded != layer_state.excluded) return;
  const bool outermost = !here || !log->frames.back().op;
  const int32_t place = outermost && port.place ? port.place() : -1;
  std::unique_lock lock(log->mutex);
  if (!current(*log)) return;
  index_ = append(*log, Kind::op, &op);
  session_ = log->generation;
  log_ = log;
  Event& e = log->trace.events[index_];
  e.schema = op.schema, e.place = place;
  lock.release();  // begin() unlocks
} catch (...) {
  index_ = kNone;
}

void OpenCall::operand(const Tensor& t, int parameter) noexcept try {
  if (!t.defined()) return;
  Trace& trace = static_cast<Log*>(log_)->trace;
  Event& e = trace.events[index_];
  if (e.num_operands == 0 && t.impl()->storage()) first_storage_ = t.impl()->storage().get();
  add_shape(trace, t, parameter, index_, false);
  ++e.num_operands;
} catch (...) {}

void OpenCall::destination(const Out& out) noexcept {
  static_cast<Log*>(log_)->trace.events[index_].inplace = out.kind == Out::inplace;
}

void OpenCall::begin() noexcept {
  auto* log = static_cast<Log*>(log_);
  log->trace.events[index_].start = now();
  log->mutex.unlock();
}

void OpenCall::end() noexcept {
  if (!noted()) return;
  const int64_t time = now();
  auto* log = static_cast<Log*>(log_);
  log->mutex.lock();
  ended_ = true;
  if (generation.load(std::memory_order_relaxed) != session_) {  // the log is another session's by now, or nobody's
    log->mutex.unlock();
    index_ = kNone;
    return;
  }
  finish(*log, index_, time, false);
  Event& e = log->trace.events[index_];
  e.results = uint32_t(log->trace.shapes.size());
}

void OpenCall::result(const Tensor& t) noexcept try {
  if (!noted() || !t.defined()) return;
  Trace& trace = static_cast<Log*>(log_)->trace;
  Event& e = trace.events[index_];
  add_shape(trace, t, 0, index_, true);
  if (e.num_results++ == 0) e.aliased = first_storage_ && t.impl()->storage().get() == first_storage_;
} catch (...) {}

OpenCall::~OpenCall() {
  if (!noted()) return;
  auto* log = static_cast<Log*>(log_);
  if (!ended_) {  // an exception
    const int64_t time = now();
    log->mutex.lock();
    if (generation.load(std::memory_order_relaxed) == session_) finish(*log, index_, time, true);
  }
  log->mutex.unlock();
}

}  // namespace vesta::profiler
