// Work: a started operation of a process group, which may or may not be done.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <vesta/core/tensor.h>
#include <vesta/multiprocessing/deadline.h>

namespace vesta {

/// A started operation. It keeps its tensors alive until it is done; when `wait` has returned it holds none.
class VESTA_API Work {
 public:
  using Callback = std::function<void(Work&)>;

  /// Makes a Work. `name` is the collective's, for messages; `timeout` is that of the operation.
  explicit Work(std::string name, Milliseconds timeout = kForever) : name_(std::move(name)), timeout_(timeout) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const std::string& name() const { return name_; }
  Milliseconds timeout() const { return timeout_; }
  /// Returns whether it has ended, with or without an error.
  bool is_completed() const;
  /// Returns whether it has ended without an error.
  bool is_success() const;
  /// Returns the error it failed with; null while it runs and if it did not fail.
  std::exception_ptr exception() const;
  /// Waits for the end and raises the error it failed with. A timeout of 0 waits as long as the operation may run;
  /// after any other timeout DistributedError is raised (the operation continues). Ctrl-C ends the wait, not the
  /// operation.
  virtual void wait(Milliseconds timeout = Milliseconds(0));
  /// Orders later work after the operation without waiting on the host if the device can; otherwise waits.
  virtual void synchronize() { wait(); }
  /// Returns whether `wait` only orders later work on a device, so that the host continues.
  virtual bool on_device() const { return false; }
  /// Returns the output tensors; empty once `wait` has returned.
  std::vector<Tensor> result() const;
  /// Returns the rank a message came from; -1 for anything else.
  int source_rank() const { return source_rank_; }
  /// Returns the number of the operation within its group.
  uint64_t sequence_number() const { return sequence_; }
  /// Calls `f` once when the operation ends, on the thread that ends it; at once if it has ended. What `f` throws is
  /// dropped. Several are called in the order given, and all before `wait` returns.
  void then(Callback f);

  // For those who implement process groups.

  /// Ends the operation, with or without an error. The first call counts.
  void finish(std::exception_ptr error = nullptr);
  void set_outputs(std::vector<Tensor> outputs);
  void set_source_rank(int rank) { source_rank_ = rank; }
  void set_sequence_number(uint64_t n) { sequence_ = n; }
  /// Sets a function that a waiting thread calls every few slices, with the seconds it has waited: for reports of late
  /// ranks.
  void set_watcher(std::function<void(double seconds)> watcher);

 protected:
  /// Waits without raising; returns whether the operation ended in time.
  bool wait_for_end(Milliseconds timeout);

 private:
  std::string name_;
  Milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // ended, with or without an error; callbacks may be running
  bool ended_ = false;  // the callbacks, too, have run
  std::thread::id finisher_;
  std::exception_ptr error_;
  std::vector<Tensor> outputs_;
  std::vector<Callback> callbacks_;
  std::function<void(double)> watcher_;
  int source_rank_ = -1;
  uint64_t sequence_ = 0;
};

using WorkPtr = std::shared_ptr<Work>;

/// Makes one Work from several: it ends when all have ended, with the error of the first that failed.
VESTA_API WorkPtr all_of(std::vector<WorkPtr> parts);
/// Does the same for parts that may be on devices: `wait` waits for each part in its own way.
VESTA_API WorkPtr coalesced(std::vector<WorkPtr> parts);

}  // namespace vesta
