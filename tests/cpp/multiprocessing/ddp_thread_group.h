// A process group whose ranks are threads of this process, and whose link has a speed: for tests and measurements of
// code built on process groups. It adds in the order of ranks, so results are the same in every run.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <source_location>
#include <thread>
#include <vector>

#include <vesta/core/ops/ops.h>
#include <vesta/multiprocessing/process_group.h>

namespace vesta::testing {

/// The meeting point of a ThreadGroup's ranks.
class ThreadHub {
 public:
  /// Makes a hub. `bytes_per_second` 0: an operation ends at once when the last rank has come to it.
  explicit ThreadHub(int size, double bytes_per_second = 0, double latency = 0)
      : size_(size), speed_(bytes_per_second), latency_(latency) {
    if (speed_ > 0) link_ = std::thread([this] { work_off(); });
  }
  ~ThreadHub() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    if (link_.joinable()) link_.join();
  }
  int size() const { return size_; }

  struct Meeting {
    Collective what;
    std::vector<std::vector<Tensor>> tensors;  // of each rank
    std::vector<WorkPtr> works;
    std::function<void(std::vector<std::vector<Tensor>>&)> act;
    int come = 0;
  };

  /// Enters rank `rank` into its operation number `sequence`; the last rank to come runs it.
  WorkPtr meet(int rank, uint64_t sequence, Collective what, std::vector<Tensor> tensors,
               std::function<void(std::vector<std::vector<Tensor>>&)> act) {
    auto work = std::make_shared<Work>(name(what), std::chrono::seconds(60));  // a rank that failed does not come
    std::shared_ptr<Meeting> full;
    {
      std::lock_guard lock(mutex_);
      auto& meeting = meetings_[sequence];
      if (!meeting) {
        meeting = std::make_shared<Meeting>();
        meeting->what = what;
        meeting->tensors.resize(size_t(size_));
      }
      VESTA_CHECK(meeting->what == what, runtime, "ThreadGroup: rank ", rank, " came to ", name(what), ", others to ",
                  name(meeting->what), ".");
      work->set_outputs(tensors);
      meeting->tensors[size_t(rank)] = std::move(tensors);
      meeting->works.push_back(work);
      if (++meeting->come == size_) {
        full = std::move(meeting);
        meetings_.erase(sequence);
        full->act = std::move(act);
        if (speed_ > 0) queue_.push_back(full);
      }
    }
    if (full && speed_ <= 0) happen(*full);
    changed_.notify_all();
    return work;
  }
  /// Returns the seconds that the link was busy.
  double busy_seconds() const { return busy_; }

 private:
  static void happen(Meeting& m) {
    NoGrad off;
    m.act(m.tensors);
    m.tensors.clear();
    for (auto& work : m.works) work->finish();
  }

  void work_off() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto next = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      double bytes = 0;
      for (const Tensor& t : next->tensors[0]) bytes += double(t.numel() * t.element_size());
      const double seconds = latency_ + bytes / speed_;
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
      busy_ = busy_ + seconds;
      happen(*next);
      next.reset();
      lock.lock();
    }
  }

  const int size_;
  const double speed_, latency_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings_;
  std::deque<std::shared_ptr<Meeting>> queue_;
  std::atomic<double> busy_{0};
  bool stop_ = false;
  std::thread link_;
};

class ThreadGroup final : public ProcessGroup {
 public:
  ThreadGroup(std::shared_ptr<ThreadHub> hub, int rank)
      : ProcessGroup("threads", "threads", rank, hub->size(), std::chrono::minutes(1)), hub_(std::move(hub)) {}

  WorkPtr all_reduce(std::vector<Tensor> tensors, ReduceOp op, const CallOptions&) override {
    VESTA_CHECK(op == ReduceOp(ReduceOp::sum), value, "ThreadGroup: expected SUM, got ", vesta::name(op), ".");
    ++reduced_;
    return meet(Collective::all_reduce, std::move(tensors), [](auto& all) {
      for (size_t i = 0; i < all[0].size(); ++i) {
        Tensor sum = all[0][i].clone();
        for (size_t r = 1; r < all.size(); ++r) sum.add_(all[r][i]);
        for (auto& of_rank : all) copy_into(of_rank[i], sum, "all_reduce");
      }
    });
  }
  WorkPtr broadcast(std::vector<Tensor> tensors, int root, const CallOptions&) override {
    return meet(Collective::broadcast, std::move(tensors), [root](auto& all) {
      for (size_t r = 0; r < all.size(); ++r) {
        for (size_t i = 0; i < all[r].size() && r != size_t(root); ++i)
          copy_into(all[r][i], all[size_t(root)][i], "broadcast");
      }
    });
  }
  WorkPtr all_gather_into(Tensor output, Tensor input, const CallOptions&) override {
    return meet(Collective::all_gather_into, {output, input}, [](auto& all) {
      std::vector<Tensor> inputs;
      for (auto& of_rank : all) inputs.push_back(of_rank[1].reshape({-1}));
      Tensor joined = cat(inputs);
      for (auto& of_rank : all) copy_into(of_rank[0], joined.reshape(of_rank[0].sizes()), "all_gather");
    });
  }
  /// Returns the number of all_reduce calls of this rank.
  int reduced() const { return reduced_; }

 private:
  template <class F>
  WorkPtr meet(Collective what, std::vector<Tensor> tensors, F act) {
    return hub_->meet(rank(), next_++, what, std::move(tensors), act);
  }
  std::shared_ptr<ThreadHub> hub_;
  uint64_t next_ = 0;
  int reduced_ = 0;
};

/// Raises unless `ok`: the same as CHECK, but on any thread (Catch2's works on one only).
inline void expect(bool ok, std::source_location at = std::source_location::current()) {
  VESTA_CHECK(ok, runtime, at.file_name(), ":", at.line(), ": expected something else.");
}

/// Runs `f(group)` on `size` threads, each a rank; rethrows the first error.
template <class F>
void on_ranks(int size, F f) {
  auto hub = std::make_shared<ThreadHub>(size);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors{size_t(size)};
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        f(std::make_shared<ThreadGroup>(hub, rank));
      } catch (...) {
        errors[size_t(rank)] = std::current_exception();
      }
    });
  }
  for (auto& t : threads) t.join();
  for (auto& e : errors) {
    if (e) std::rethrow_exception(e);
  }
}

}  // namespace vesta::testing
