// NcclWork: an operation that was queued on a communicator's stream. `wait` orders the current stream after it.
#pragma once
#include <vesta/cuda/nccl/communicator.h>
#include <vesta/multiprocessing/process_group_core.h>

namespace vesta::cuda::nccl {

/// The state that the works and threads of a group share.
struct GroupState {
  explicit GroupState(const std::shared_ptr<GroupCore>& core) : communicators(core->name, notice), core_(core) {}
  /// Begins the abort if the group has failed. A thread that finds a failure first records it, then begins the abort;
  /// another thread may act on the record before the abort begins.
  void abort_if_failed() noexcept;

  FailureNotice notice;
  Communicators communicators;

 private:
  const std::weak_ptr<GroupCore> core_;  // the owner of this
};

class NcclWork : public Work {
 public:
  /// Makes a Work. With `blocking`, `wait` waits on the host (for barriers).
  NcclWork(const char* name, Milliseconds timeout, std::shared_ptr<GroupState> group, bool blocking = false);

  /// Makes the current stream wait; the host continues. With a timeout, the host waits for the end.
  void wait(Milliseconds timeout) override;
  void synchronize() override { order(); }
  bool on_device() const override { return !blocking_; }

  // For the group.

  /// Keeps tensors until `wait`, or until the operation has ended.
  void keep(const std::vector<Tensor>& tensors);
  /// Records that the operation is queued: `end` marks its end on the communicator's stream; `called_on` is the stream
  /// of its inputs.
  void queued(Event end, cuda::Stream called_on, std::shared_ptr<Communicator> on);
  /// Records that it will never be queued, and why.
  void not_queued(std::exception_ptr error);
  /// Waits for the end on the device, on a thread of the group. Throws the error if it ended otherwise.
  void await(const GroupCore& core, uint64_t sequence, Clock::time_point deadline);
  /// Returns whether the device has finished it.
  bool ended_on_device() const;
  /// Waits for the end, which is near, and raises its error.
  void raise();

 private:
  enum State : uint8_t { pending, flying, failed };
  void order();
  void release();

  const std::shared_ptr<GroupState> group_;
  const bool blocking_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  State state_ = pending;
  std::exception_ptr error_;
  Event end_;
  cuda::Stream called_on_;
  std::shared_ptr<Communicator> on_;
  std::vector<Tensor> kept_;
  bool letting_go_ = false;  // `release` is running: until it is done, `wait` must not return
};

}  // namespace vesta::cuda::nccl
