// Work: an operation of a process group that was started, and may or may not be done.
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

/// Is a started operation. It keeps its tensors alive until it is done; when `wait` has returned it holds none.
class VESTA_API Work {
 public:
  using Callback = std::function<void(Work&)>;

  /// `name` is the collective's, for messages; `timeout` is what the operation was given.
  explicit Work(std::string name, Milliseconds timeout = kForever) : name_(std::move(name)), timeout_(timeout) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const std::string& name() const { return name_; }
  Milliseconds timeout() const { return timeout_; }
  /// Returns whether it ended, well or not.
  bool is_completed() const;
  /// Returns whether it ended well.
  bool is_success() const;
  /// Returns what it failed with; null while it runs and where it ended well.
  std::exception_ptr exception() const;
  /// Waits for the end and raises what it failed with. A timeout of 0 waits as long as the operation may run, another
  /// one raises DistributedError when it is over (the operation goes on). Ctrl-C ends the wait, not the operation.
  virtual void wait(Milliseconds timeout = Milliseconds(0));
  /// Orders what follows after the operation without waiting for it where the device can; otherwise waits.
  virtual void synchronize() { wait(); }
  /// Returns whether `wait` orders what follows on a device, and the host goes on.
  virtual bool on_device() const { return false; }
  /// Returns the output tensors; empty once `wait` has returned.
  std::vector<Tensor> result() const;
  /// Returns the rank a message came from; -1 where that is no question.
  int source_rank() const { return source_rank_; }
  /// Returns the number of the operation within its group.
  uint64_t sequence_number() const { return sequence_; }
  /// Calls `f` once when the operation ends, on the thread that ends it; at once where it has ended. What `f` throws is
  /// dropped. Of several, the first given is called first, and all before `wait` returns.
  void then(Callback f);

  // For those who implement process groups.

  /// Ends the operation, with an error or without. The first call counts.
  void finish(std::exception_ptr error = nullptr);
  void set_outputs(std::vector<Tensor> outputs);
  void set_source_rank(int rank) { source_rank_ = rank; }
  void set_sequence_number(uint64_t n) { sequence_ = n; }
  /// Sets what a waiting thread calls every few slices, with the seconds it has waited: reports of ranks that are late.
  void set_watcher(std::function<void(double seconds)> watcher);

 protected:
  /// Waits without raising; tells whether the operation ended in time.
  bool wait_for_end(Milliseconds timeout);

 private:
  std::string name_;
  Milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // ended, well or not; callbacks may be running
  bool ended_ = false;  // these too
  std::thread::id finisher_;
  std::exception_ptr error_;
  std::vector<Tensor> outputs_;
  std::vector<Callback> callbacks_;
  std::function<void(double)> watcher_;
  int source_rank_ = -1;
  uint64_t sequence_ = 0;
};

using WorkPtr = std::shared_ptr<Work>;

/// Makes one Work of several: it ends when all have, with the error of the first that failed.
VESTA_API WorkPtr all_of(std::vector<WorkPtr> parts);
/// The same where the parts may be on devices: `wait` waits for each as that one waits.
VESTA_API WorkPtr coalesced(std::vector<WorkPtr> parts);

}  // namespace vesta
