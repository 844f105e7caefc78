#include <vesta/multiprocessing/work.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <vesta/core/dispatch/profiler.h>
#include <vesta/multiprocessing/distributed_error.h>
#include <vesta/multiprocessing/standstill.h>

namespace vesta {

bool Work::is_completed() const {
  std::lock_guard lock(mutex_);
  return done_;
}

bool Work::is_success() const {
  std::lock_guard lock(mutex_);
  return done_ && !error_;
}

std::exception_ptr Work::exception() const {
  std::lock_guard lock(mutex_);
  return error_;
}

std::vector<Tensor> Work::result() const {
  std::lock_guard lock(mutex_);
  return outputs_;
}

void Work::set_outputs(std::vector<Tensor> outputs) {
  std::lock_guard lock(mutex_);
  outputs_.swap(outputs);  // the old ones are released with the argument, outside the lock
}

void Work::set_watcher(std::function<void(double)> watcher) {
  std::lock_guard lock(mutex_);
  watcher_ = std::move(watcher);
}

bool Work::wait_for_end(Milliseconds timeout) {
  const auto start = Clock::now(), end = deadline_in(timeout);
  WaitScope scope(timeout >= kForever);
  std::unique_lock lock(mutex_);
  auto over = [&] { return ended_ || (done_ && finisher_ == std::this_thread::get_id()); };
  if (over()) return true;
  const profiler::Part part(profiler::Kind::part, profiler::running() ? "c10d::wait " + name_ : std::string());
  while (!over()) {
    const auto now = Clock::now();
    if (now >= end) return false;
    if (wait_until(changed_, lock, std::min(end, now + Milliseconds(1000)), over)) break;
    if (auto watcher = std::exchange(watcher_, nullptr)) {  // the watcher itself, not a copy: it has state
      lock.unlock();
      watcher(std::chrono::duration<double>(Clock::now() - start).count());
      lock.lock();
      if (!done_) watcher_ = std::move(watcher);
    }
  }
  return true;
}

void Work::wait(Milliseconds timeout) {
  if (!wait_for_end(timeout.count() > 0 ? timeout : kForever)) {
    distributed_fail(DistributedCause::backend, name_, ": wait timed out after ", timeout.count(),
                     " ms; the operation itself goes on.");
  }
  std::vector<Tensor> outputs;  // released outside the lock
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    outputs.swap(outputs_);
    error = error_;
  }
  if (error) std::rethrow_exception(error);
}

void Work::then(Callback f) {
  {
    std::lock_guard lock(mutex_);
    if (!done_) {
      callbacks_.push_back(std::move(f));
      return;
    }
  }
  try {
    f(*this);
  } catch (...) {  // a callback's error is dropped
  }
}

void Work::finish(std::exception_ptr error) {
  std::vector<Callback> callbacks;
  std::vector<Tensor> dropped;
  std::function<void(double)> watcher;
  {
    std::lock_guard lock(mutex_);
    if (done_) return;
    done_ = true;
    finisher_ = std::this_thread::get_id();
    error_ = std::move(error);
    if (error_) dropped.swap(outputs_);
    callbacks.swap(callbacks_);
    watcher.swap(watcher_);
  }
  for (Callback& f : callbacks) {
    try {
      f(*this);
    } catch (...) {}
  }
  callbacks.clear();  // releases what they hold before any waiter continues
  dropped.clear();
  std::lock_guard lock(mutex_);  // now the waiters: they take the outputs away, which the callbacks have seen
  ended_ = true;
  changed_.notify_all();
}

namespace {

Milliseconds longest(const std::vector<WorkPtr>& parts) {
  Milliseconds t(0);
  for (const WorkPtr& w : parts) t = std::max(t, w->timeout());
  return t;
}

std::string name_of(const std::vector<WorkPtr>& parts) { return parts.empty() ? "coalesced" : parts[0]->name(); }

class Coalesced final : public Work {
 public:
  explicit Coalesced(std::vector<WorkPtr> parts) : Work(name_of(parts), longest(parts)), parts_(std::move(parts)) {}
  void wait(Milliseconds timeout) override {
    for (const WorkPtr& w : parts_) w->wait(timeout);
    set_outputs({});
  }
  void synchronize() override {
    for (const WorkPtr& w : parts_) w->synchronize();
    set_outputs({});
  }
  bool on_device() const override {
    return std::ranges::all_of(parts_, [](const WorkPtr& w) { return w->on_device(); });
  }

 private:
  std::vector<WorkPtr> parts_;
};

}  // namespace

WorkPtr coalesced(std::vector<WorkPtr> parts) {
  auto whole = std::make_shared<Coalesced>(parts);
  std::vector<Tensor> outputs;
  for (const WorkPtr& w : parts) {
    for (const Tensor& t : w->result()) outputs.push_back(t);
  }
  whole->set_outputs(std::move(outputs));
  all_of(std::move(parts))->then([whole](Work& done) { whole->finish(done.exception()); });
  return whole;
}

WorkPtr all_of(std::vector<WorkPtr> parts) {
  struct State {
    std::mutex mutex;
    size_t left;
    std::exception_ptr error;
    std::vector<Tensor> outputs;
  };
  auto whole = std::make_shared<Work>(name_of(parts), longest(parts));
  if (parts.empty()) {
    whole->finish();
    return whole;
  }
  auto state = std::make_shared<State>();
  state->left = parts.size();
  for (const WorkPtr& part : parts) {
    part->then([state, whole](Work& done) {
      std::vector<Tensor> outputs = done.result();
      std::lock_guard lock(state->mutex);
      if (!state->error) state->error = done.exception();
      state->outputs.insert(state->outputs.end(), outputs.begin(), outputs.end());
      if (--state->left) return;
      if (!state->error) whole->set_outputs(std::move(state->outputs));
      whole->finish(state->error);
    });
  }
  return whole;
}

}  // namespace vesta
