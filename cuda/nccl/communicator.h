// Communicators of NCCL: one per device and group for collectives, one per direction of two ranks for messages.
//
// NCCL allows one thread at a time on a communicator, except that one may abort it. All calls are non-blocking: calls
// that are still in progress are polled (`settled`), so that no thread is stuck in one.
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

/// A function that a thread calls between two polls of something that takes time; it throws if waiting is useless.
using Look = std::function<void()>;

/// A sleep that is longer each time.
class Backoff {
 public:
  void sleep();

 private:
  int microseconds_ = 10;
};

/// A record of whether the user of a group has got an error for its failure: from a call, by `wait`, or, at the latest,
/// by the next wait for the device, whose values were never written.
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

  /// Begins to connect to the other ranks; `settled` tells when it is done.
  void connect(const UniqueId& id);
  /// Queues operations as one: `f` makes NCCL's calls on this communicator and its stream. `settled` tells when they
  /// are queued on the device.
  void queue(const std::function<void(Comm)>& f);
  /// Returns whether the last call is done; DistributedError if it failed.
  bool settled();
  /// Waits until `settled`.
  void settle(const Look& look);
  /// Returns the asynchronous error so far, or an empty text.
  std::string async_error();
  /// Aborts everything on the communicator, here and on the device. Safe from any thread; may take long.
  void abort() noexcept;
  /// Closes the communicator after its last operation.
  void close() noexcept;

  /// Counts an operation that is queued; end() counts it as ended.
  void begin() { ++flying_; }
  void end() { --flying_; }
  bool busy() const { return flying_ > 0; }
  /// A scope that counts an operation while it is queued.
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

/// All communicators of a group, and their common end.
class Communicators {
 public:
  /// Raises a ValueError if VESTA_NCCL_ABORT_TIMEOUT is not a number of seconds.
  Communicators(std::string group, FailureNotice& notice);
  ~Communicators();
  Communicators(const Communicators&) = delete;

  std::shared_ptr<Communicator> add(int device, int rank, int size);
  /// Begins to abort all of them; threads that wait for a device with operations under way get the reason. NCCL has
  /// VESTA_NCCL_ABORT_TIMEOUT seconds (60) for each communicator; after that their devices are lost, since streams hang
  /// there: every wait for them raises the reason (device_wait.h).
  void abort(const std::string& reason) noexcept;
  bool aborting() const { return aborting_; }
  /// Waits for an abort that was begun.
  void wait_aborted() noexcept;
  /// Closes all of them after their last operations, or after an abort that was begun. No thread is left.
  void close() noexcept;

 private:
  void abort_all(const std::string& reason) noexcept;
  void give_up(const std::vector<std::shared_ptr<Communicator>>& all, const std::string& reason) noexcept;

  const std::string group_;
  FailureNotice& notice_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Communicator>> all_;
  std::atomic<bool> aborting_{false};
  bool aborted_ = false;
  std::thread thread_;
};

}  // namespace vesta::cuda::nccl
