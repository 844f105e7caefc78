// Profile: where the time of a C++ program goes, op by op and layer by layer.
//
//   profiler::Profile profile;
//   train_step();
//   std::cout << profile.table() << profile.layer_table();
//
// What the rows mean, and what is recorded: core/dispatch/profiler.h. The CPU's clock is read: on a device with queues
// the times are those of the host.
#pragma once
#include <string>
#include <vector>

#include <vesta/core/ops/cost.h>

namespace vesta::profiler {

/// All calls of one name.
struct Total {
  std::string name;
  Kind kind = Kind::op;
  int64_t calls = 0;
  double seconds = 0;       // with what the calls contain
  double self_seconds = 0;  // without
  int64_t memory = 0;       // bytes allocated less bytes freed, with what the calls contain
  Cost cost;                // of the calls themselves
  double least_seconds = 0;  // that this machine needs for it
  bool on_device = false;    // of calls on another device than the CPU: their times are the host's
};

/// The totals of one module; backward counts for the module of its forward: see `Profile::layers`.
struct LayerTotal {
  std::string name;
  int64_t calls = 0;
  double forward_seconds = 0, backward_seconds = 0;  // nothing counts in two rows
  int64_t memory = 0;
  Cost cost;
  double least_seconds = 0;
  bool on_device = false;
};

/// A recording of every thread's ops from its construction on.
class VESTA_API Profile {
 public:
  Profile() : session_(start()) {}
  ~Profile();
  Profile(const Profile&) = delete;

  /// Ends the recording; later calls do nothing.
  void stop();
  /// Returns the events, by thread; what has happened so far, if it still records.
  const std::vector<Trace>& traces();
  /// Returns the calls by name, the largest self time first.
  std::vector<Total> totals();
  /// Returns the largest `rows` of them as a table with times, calls, memory, and the shares of the machine's peaks.
  std::string table(size_t rows = 20);
  /// Returns the modules by path, the slowest first.
  /// Paths begin below the outermost module.
  /// Calls outside of any module are under "(outside of layers)".
  std::vector<LayerTotal> layers();
  /// Returns the slowest `rows` of them as a table.
  std::string layer_table(size_t rows = 30);
  /// Writes all events to a file that chrome://tracing opens. Error(io) where it cannot be written.
  void export_chrome_trace(const std::string& path);

 private:
  uint64_t session_;
  bool stopped_ = false;
  std::vector<Trace> traces_;
};

}  // namespace vesta::profiler
