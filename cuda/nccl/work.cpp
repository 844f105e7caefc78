#include <vesta/cuda/nccl/work.h>

#include <vesta/core/base/warning.h>

namespace vesta::cuda::nccl {
namespace {

constexpr auto kLate = std::chrono::seconds(5);  // an operation that takes longer is reported, with the missing ranks
constexpr int kLooksPerErrorCheck = 16;

}  // namespace

void GroupState::abort_if_failed() noexcept {
  const auto core = core_.lock();
  if (!core || !core->failed()) return;
  std::string reason;
  try {
    core->check_failed("");
  } catch (const std::exception& e) {
    reason = e.what();
  }
  communicators.abort(reason);
}

NcclWork::NcclWork(const char* name, Milliseconds timeout, std::shared_ptr<GroupState> group, bool blocking)
    : Work(name, timeout), group_(std::move(group)), blocking_(blocking) {
  then([](Work& ended) { static_cast<NcclWork&>(ended).release(); });  // on whichever thread ends it
}

void NcclWork::wait(Milliseconds timeout) {
  if (timeout.count() <= 0 && !blocking_) return order();
  try {
    Work::wait(timeout);
  } catch (...) {
    if (exception()) group_->notice.heard();  // the group failed: this was not just the caller's timeout
    throw;
  }
}

void NcclWork::order() {
  std::vector<Tensor> dropped;  // released outside the lock
  bool broken = false;
  {
    std::unique_lock lock(mutex_);
    wait_until(changed_, lock, deadline_in(kForever), [&] { return state_ != pending && !letting_go_; });
    broken = state_ == failed;
    if (!broken) {
      const cuda::Stream now = current_stream(on_->device());
      end_.block(now);
      // What this stream does next comes after the operation, freeing included. On a stream other than the call's, the
      // tensors could be freed too early for the call's stream: then they are kept until the operation has ended.
      if (now == called_on_) dropped.swap(kept_);
    }
  }
  if (broken || exception() || group_->communicators.aborting()) raise();
  set_outputs({});
}

void NcclWork::raise() {
  try {
    Work::wait(Milliseconds(0));
  } catch (...) {
    if (exception()) group_->notice.heard();
    throw;
  }
}

void NcclWork::keep(const std::vector<Tensor>& tensors) {
  std::lock_guard lock(mutex_);
  kept_.insert(kept_.end(), tensors.begin(), tensors.end());
}

void NcclWork::queued(Event end, cuda::Stream called_on, std::shared_ptr<Communicator> on) {
  std::lock_guard lock(mutex_);
  end_ = std::move(end);
  called_on_ = called_on;
  on_ = std::move(on);
  on_->begin();
  state_ = flying;
  changed_.notify_all();
}

void NcclWork::not_queued(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (state_ != pending) return;
  error_ = std::move(error);
  state_ = failed;
  changed_.notify_all();
}

bool NcclWork::ended_on_device() const {
  std::lock_guard lock(mutex_);
  return state_ == flying && end_.query();
}

void NcclWork::await(const GroupCore& core, uint64_t sequence, Clock::time_point deadline) {
  const auto start = Clock::now();
  bool told = blocking_;  // a thread that waits on the host reports by itself
  Backoff pause;
  for (int looks = 0;; ++looks) {
    std::shared_ptr<Communicator> on;
    {
      std::lock_guard lock(mutex_);
      if (state_ == failed) std::rethrow_exception(error_);
      on = on_;
    }
    if (group_->communicators.aborting() || core.failed()) {
      distributed_fail(DistributedCause::backend, "the group was aborted.");
    }
    if (on && ended_on_device()) return;
    if (on && looks % kLooksPerErrorCheck == 0) {
      if (const std::string error = on->async_error(); !error.empty()) {
        distributed_fail(DistributedCause::backend, error, ".");
      }
    }
    const auto now = Clock::now();
    if (now >= deadline) {
      distributed_fail(DistributedCause::backend, name(), " timed out after ", timeout().count(), " ms.");
    }
    if (!told && now - start >= kLate) {
      told = true;
      const std::string who = const_cast<GroupCore&>(core).report(sequence);
      if (!who.empty()) warn(text(name(), " #", sequence, " of group '", core.name, "' has waited for 5 s. ", who));
    }
    pause.sleep();
  }
}

/// Releases everything; with an error, after the communicators' abort.
void NcclWork::release() {
  const std::exception_ptr error = exception();
  if (error) {
    group_->abort_if_failed();
    group_->communicators.wait_aborted();  // until then the device may still write
  }
  std::vector<Tensor> dropped;
  std::unique_lock lock(mutex_);
  if (state_ == flying) on_->end();
  if (error && state_ == pending) {
    error_ = error;
    state_ = failed;
  }
  dropped.swap(kept_);
  letting_go_ = true;
  lock.unlock();
  dropped.clear();  // outside the lock: destroying a tensor may need Python's
  lock.lock();
  letting_go_ = false;
  changed_.notify_all();
}

}  // namespace vesta::cuda::nccl
