// The profiler's recorder: what every thread did, with times, nesting, shapes and memory, while a session runs.
//
// Note [How calls are recorded]
// Each thread appends events to a log of its own, which it locks for a few instructions per event; the lock is
// uncontended until a session ends. A log belongs to the registry and to its thread: it outlives a thread that ends,
// and a thread outlives a session. A session is a number and a time: logs are kept while any session runs, and a
// session takes the events that began after it. A call that was open when the last session ended finds at its end that
// the number has changed, and leaves the log alone.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vesta/core/dispatch/op.h>

namespace vesta::profiler {

/// The kind of an event.
enum class Kind : uint8_t {
  op,        // a call of an op
  part,      // a part that the program named (record_function)
  layer,     // a call of a module
  function,  // the engine evaluates a node of the tape: its hooks, its formula, what becomes of the gradients
  node,      // the node's formula
};

/// The shape of a tensor of a call: `ndim` sizes in Trace::sizes, from index `at` on.
struct Shape {
  uint32_t at = 0;
  uint8_t ndim = 0;
  DType dtype = DType::float32;
  int16_t parameter = 0;  // the number of the operand's parameter; 0 for a result
  uint32_t block = 0;     // of memory, if that is watched: MemoryEvent::block
};

/// The allocation, release or first sighting of a block of CPU memory.
struct MemoryEvent {
  int64_t time = 0;
  int64_t bytes = 0;  // below 0: freed
  uint32_t block = 0;  // its number, in all threads
  uint32_t event = ~0u;  // the innermost one around it, of the same thread; ~0u: none
  bool existed = false;  // it was allocated before it was seen
};

/// One event of one thread. Times are nanoseconds of the monotonic clock.
struct Event {
  static constexpr uint32_t kNone = ~0u;
  const Schema* schema = nullptr;  // of an op
  int64_t start = 0, end = 0;
  int64_t memory = 0;              // bytes on the CPU that its thread allocated in it, less those freed
  /// Of an op: the numbers of the nodes of the tape that were made in it, [first, last); of a node: its own.
  uint64_t first_node = 0, last_node = 0;
  uint32_t name = 0;               // of what is no op: Trace::names
  uint32_t parent = kNone;         // of the same thread
  uint32_t operands = 0, results = 0;  // where their shapes begin in Trace::shapes
  uint16_t num_operands = 0, num_results = 0;
  int32_t place = -1;              // the position in the program, numbered by the language binding; -1: unknown
  uint32_t tag = 0;                // of a layer: which module
  Kind kind = Kind::op;
  bool aliased = false;            // the first result shares the first operand's memory
  bool inplace = false;            // a pointwise op that writes to its first operand
  bool open = true;                // it had not ended when the session did
  bool failed = false;             // an exception left it
  bool on_device = false;          // a tensor of it lies on another device than the CPU
};

/// The events of one thread, parents before their children.
struct Trace {
  int64_t thread = 0;  // the system's number
  std::vector<Event> events;
  std::vector<Shape> shapes;
  std::vector<int64_t> sizes;
  std::vector<std::string> names;
  std::vector<MemoryEvent> memory;  // where it was asked for

  std::string name_of(const Event& e) const {
    return e.kind != Kind::op ? names[e.name] : e.inplace ? std::string(e.schema->name) + "_" : e.schema->name;
  }
  std::span<const Shape> operands_of(const Event& e) const { return {shapes.data() + e.operands, e.num_operands}; }
  std::span<const Shape> results_of(const Event& e) const { return {shapes.data() + e.results, e.num_results}; }
  IntSpan sizes_of(const Shape& s) const { return {sizes.data() + s.at, s.ndim}; }
};

/// Begins a session; returns its number. From now on the calls of every thread are recorded, and with `memory` the
/// blocks of CPU memory.
VESTA_API uint64_t start(bool memory = false);
/// Returns the number of the block of a tensor's memory; 0 if no session watches memory, or not this block.
VESTA_API uint32_t block_of(const Tensor& t);
/// Returns what all threads did since a session began. The session continues.
VESTA_API std::vector<Trace> snapshot(uint64_t session);
/// Ends a session, and returns what all threads did in it.
VESTA_API std::vector<Trace> stop(uint64_t session);
/// Returns whether a session runs.
VESTA_API bool running() noexcept;
/// Returns the time of the clock that events have, in nanoseconds.
VESTA_API int64_t now() noexcept;

/// Opens an event of a kind other than op; returns its token for `close`. 0: no session runs.
VESTA_API uint64_t open(Kind kind, std::string_view name, uint32_t tag = 0, uint64_t node = 0) noexcept;
/// Closes an event of this thread, and those within it that are still open.
VESTA_API void close(uint64_t token, bool failed = false) noexcept;
/// Notes the operands or the results of an open event that is no op.
VESTA_API void note(uint64_t token, std::span<const Tensor> tensors, bool results) noexcept;

/// An event of a kind other than op, open while this lives: `profiler::Part part(Kind::part, "forward");`.
class Part {
 public:
  Part(Kind kind, std::string_view name, uint64_t node = 0) noexcept : token_(open(kind, name, 0, node)) {}
  ~Part() { close(token_); }
  Part(const Part&) = delete;
  uint64_t token() const { return token_; }

 private:
  uint64_t token_;
};

/// The measured peak rates of this machine: bytes per second to and from memory, and to and from the caches of the
/// threads; float32 operations per second (a multiplication and an addition are two).
struct Peaks {
  static constexpr double kCached = double(1 << 20);  // an op that moves at most so many bytes may find them in a cache
  double bytes_per_second = 0;
  double cached_bytes_per_second = 0;
  double operations_per_second = 0;
  /// Returns the least time, in seconds, for moving `bytes` and for `operations`; of float64 half as many are possible.
  double least_seconds(double bytes, double operations, bool float64) const {
    const double bandwidth = bytes <= kCached ? cached_bytes_per_second : bytes_per_second;
    const double moving = bandwidth > 0 ? bytes / bandwidth : 0;
    const double computing = operations_per_second > 0 ? (float64 ? 2 : 1) * operations / operations_per_second : 0;
    return moving > computing ? moving : computing;
  }
};
/// Returns the peaks; measures them on the first call, with the threads that ops use, in about 0.2 s; longer where
/// others keep the machine busy.
VESTA_API Peaks peaks();

/// Callbacks of the levels above; each may be null.
struct Port {
  uint64_t (*node_counter)() = nullptr;  // the nodes of the tape that this thread has made
  void (*switched)(bool on) = nullptr;  // called when the first session begins and the last one ends
  int32_t (*place)() = nullptr;  // where in the program the calling thread is; -1: unknown
  Peaks (*measure_peaks)() = nullptr;
};
extern VESTA_API Port port;

/// Enters ops whose calls shall be recorded; the library does so for its own, a plug-in for its list.
VESTA_API void add_ops(std::span<OpBase* const> ops);

}  // namespace vesta::profiler
