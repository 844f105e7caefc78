// Communicators of NCCL: one per device and group for collectives, one per direction of two ranks for messages.
//
// NCCL allows one thread at a time on a communicator, except that one may abort it. All calls are non-blocking: those
// that have not returned for good are asked for again (`settled`), so that nobody is stuck in one.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <vesta/cuda/nccl/nccl_library.h>
#include <vesta/cuda/stream.h>
#include <vesta/multiprocessing/deadline.h>

namespace vesta::cuda::nccl {

/// Is what a thread does between two looks at something that takes time: it throws where waiting is of no use.
using Look = std::function<void()>;

/// Sleeps a little, then longer.
class Backoff {
 public:
  void sleep();

 private:
  int microseconds_ = 10;
};

/// Is whether the user of a group has heard of its failure: from a call, from `wait`, or, at the latest, from the next
/// wait for the device, whose values nobody wrote.
class FailureNotice {
 public:
  void post(const std::vector<int>& devices, std::exception_ptr error);
  void heard();

 private:
  std::mutex mutex_;
  bool told_ = false;
};

class Communicator {
 public:
  Communicator(int device, int rank, int size);
  ~Communicator();
  Communicator(const Communicator&) = delete;

  /// Begins to meet the other ranks; `settled` tells when it is done.
  void connect(const UniqueId& id);
  /// Queues operations as one: `f` makes NCCL's calls on this communicator and its stream. `settled` tells when they
  /// are queued on the device.
  void queue(const std::function<void(Comm)>& f);
  /// Returns whether the last call is done; DistributedError where it failed.
  bool settled();
  /// Waits for that.
  void settle(const Look& look);
  /// Returns what went wrong since, or an empty text.
  std::string async_error();
  /// Ends everything on it, here and on the device. Safe from any thread; may take long.
  void abort() noexcept;
  /// Ends it after its last operation.
  void close() noexcept;

  /// Counts operations that are queued and not known to have ended.
  void begin() { ++flying_; }
  void end() { --flying_; }
  bool busy() const { return flying_ > 0; }
  /// Counts one that is being queued.
  class Busy {
   public:
    explicit Busy(Communicator& c) : c_(c) { c_.begin(); }
    ~Busy() { c_.end(); }
    Busy(const Busy&) = delete;

   private:
    Communicator& c_;
  };

  cuda::Stream stream() const { return stream_; }
  nccl::Stream handle() const { return stream_.handle(); }
  int device() const { return stream_.device(); }

 private:
  Comm live() const;

  cuda::Stream stream_;
  int rank_, size_;
  std::timed_mutex calling_;
  std::atomic<Comm> comm_{nullptr};
  std::atomic<int> flying_{0};
  const char* last_call_ = "";
};

/// Is all communicators of a group, and their common end.
class Communicators {
 public:
  Communicators(std::string group, FailureNotice& notice) : group_(std::move(group)), notice_(notice) {}
  ~Communicators();
  Communicators(const Communicators&) = delete;

  std::shared_ptr<Communicator> add(int device, int rank, int size);
  /// Begins to abort all of them; those who wait for a device with operations under way get the reason. NCCL's own
  /// abort has kAbortPatience; then the process ends, since its streams hang.
  void abort(const std::string& reason) noexcept;
  bool aborting() const { return aborting_; }
  /// Returns when what was begun is done.
  void wait_aborted() noexcept;
  /// Ends all of them after their last operations, or the abort that was begun. No thread is left.
  void close() noexcept;

 private:
  void abort_all(const std::string& reason) noexcept;

  const std::string group_;
  FailureNotice& notice_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Communicator>> all_;
  std::atomic<bool> aborting_{false};
  bool aborted_ = false;
  std::thread thread_;
};

}  // namespace vesta::cuda::nccl
