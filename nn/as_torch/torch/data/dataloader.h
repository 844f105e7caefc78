// The loader: batches of a dataset in the order of a sampler, made ahead of time by worker threads.
#pragma once
#include <torch/arg.h>
#include <torch/data/samplers.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace torch::data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  TORCH_ARG(size_t, batch_size) = 1;
  /// Threads that make batches; with 0 the caller makes them.
  TORCH_ARG(size_t, workers) = 0;
  /// Batches that are under way at once, twice as many as workers by default.
  TORCH_ARG(optional<size_t>, max_jobs);
  TORCH_ARG(optional<std::chrono::milliseconds>, timeout);
  TORCH_ARG(bool, enforce_ordering) = true;
  TORCH_ARG(bool, drop_last) = false;
};

/// What a worker raised, in the thread that asked for the batch.
struct WorkerException : public std::exception {
  explicit WorkerException(std::exception_ptr original) : original_exception(std::move(original)) {
    try {
      std::rethrow_exception(original_exception);
    } catch (const std::exception& e) {
      message = std::string("Caught an exception in DataLoader worker thread. Original message: ") + e.what();
    } catch (...) {
      message = "Caught an exception in DataLoader worker thread.";
    }
  }
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

template <class Source, class SamplerType>
class StatelessDataLoader {
 public:
  using DatasetType = Source;
  using Batch = typename Source::BatchType;
  using BatchType = Batch;
  using Request = typename SamplerType::BatchRequestType;

  /// Reads one epoch; all iterators of an epoch stand at the same batch.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Batch;
    using pointer = Batch*;
    using reference = Batch&;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(StatelessDataLoader* loader) : loader_(loader) { ++*this; }
    Batch& operator*() const { return *batch_; }
    Batch* operator->() const { return batch_.get(); }
    Iterator& operator++() {
      optional<Batch> next = loader_->next();
      batch_ = next ? std::make_shared<Batch>(std::move(*next)) : nullptr;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.batch_ == b.batch_; }

   private:
    StatelessDataLoader* loader_ = nullptr;
    std::shared_ptr<Batch> batch_;  // none at the end
  };

  StatelessDataLoader(Source dataset, SamplerType sampler, DataLoaderOptions options)
      : options_(std::move(options)), sampler_(std::move(sampler)), dataset_(std::move(dataset)) {
    TORCH_CHECK(options_.batch_size() > 0, "DataLoader: expected a batch_size above 0");
    for (size_t i = 0; i < options_.workers(); ++i) {
      workers_.emplace_back([this, own = dataset_]() mutable { work(own); });
    }
  }
  StatelessDataLoader(const StatelessDataLoader&) = delete;
  ~StatelessDataLoader() { join(); }

  /// Begins an epoch. Error: batches of the one before are still under way.
  Iterator begin() {
    TORCH_CHECK(asked_ == given_,
                "Attempted to get a new DataLoader iterator while another iterator is not yet exhausted");
    sampler_.reset(dataset_.size());
    exhausted_ = false;
    asked_ = given_ = 0;
    return Iterator(this);
  }
  Iterator end() { return {}; }
  const DataLoaderOptions& options() const noexcept { return options_; }
  /// Ends the workers.
  void join() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : workers_) t.join();
    workers_.clear();
  }

 private:
  struct Job {
    size_t number;
    Request request;
  };
  struct Result {
    optional<Batch> batch;
    std::exception_ptr error;
  };

  /// Returns the sampler's next request; a last one that is too small may be dropped.
  optional<Request> next_request() {
    if (exhausted_) return {};
    optional<Request> request = sampler_.next(options_.batch_size());
    if (request && options_.drop_last() && size_of(*request) < options_.batch_size()) request.reset();
    exhausted_ = !request;
    return request;
  }
  static size_t size_of(const Request& request) {
    if constexpr (requires { request.size(); }) return request.size();
    else return request;
  }

  optional<Batch> next() {
    if (workers_.empty()) {
      optional<Request> request = next_request();
      if (!request) return {};
      return dataset_.get_batch(std::move(*request));
    }
    const size_t most = options_.max_jobs().value_or(2 * options_.workers());
    std::unique_lock lock(mutex_);
    while (asked_ - given_ < most) {
      optional<Request> request = next_request();
      if (!request) break;
      jobs_.push_back({asked_++, std::move(*request)});
    }
    changed_.notify_all();
    if (given_ == asked_) return {};
    const auto is_there = [&] { return options_.enforce_ordering() ? results_.count(given_) > 0 : !results_.empty(); };
    if (options_.timeout()) {
      TORCH_CHECK(changed_.wait_for(lock, *options_.timeout(), is_there), "DataLoader: timeout in ",
                  options_.timeout()->count(), " ms while waiting for a batch");
    } else {
      changed_.wait(lock, is_there);
    }
    const auto found = options_.enforce_ordering() ? results_.find(given_) : results_.begin();
    Result result = std::move(found->second);
    results_.erase(found);
    ++given_;
    if (result.error) {
      lock.unlock();
      drain();
      throw WorkerException(result.error);
    }
    return std::move(result.batch);
  }
  /// Forgets what is under way, after an error.
  void drain() {
    std::unique_lock lock(mutex_);
    given_ += jobs_.size();
    jobs_.clear();
    changed_.wait(lock, [&] { return results_.size() == asked_ - given_; });
    results_.clear();
    given_ = asked_;
  }
  void work(Source& dataset) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      Result result;
      try {
        result.batch = dataset.get_batch(std::move(job.request));
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      results_[job.number] = std::move(result);
      changed_.notify_all();
    }
  }

  DataLoaderOptions options_;
  SamplerType sampler_;
  Source dataset_;
  bool exhausted_ = false, stop_ = false;
  size_t asked_ = 0, given_ = 0;  // batches of this epoch
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<size_t, Result> results_;
  std::vector<std::thread> workers_;
};

/// Makes a loader with a sampler of one's own.
template <class Source, class SamplerType>
  requires requires { typename SamplerType::BatchRequestType; }
std::unique_ptr<StatelessDataLoader<Source, SamplerType>> make_data_loader(Source dataset, SamplerType sampler,
                                                                           DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Source, SamplerType>>(std::move(dataset), std::move(sampler),
                                                                    std::move(options));
}
/// Makes a loader whose sampler is made for the size of the dataset.
template <class SamplerType = samplers::RandomSampler, class Source>
std::unique_ptr<StatelessDataLoader<Source, SamplerType>> make_data_loader(
    Source dataset, DataLoaderOptions options = DataLoaderOptions()) {
  const optional<size_t> size = dataset.size();
  TORCH_CHECK(size.has_value(), "Expected the dataset to be sized in order to construct the Sampler");
  return std::make_unique<StatelessDataLoader<Source, SamplerType>>(std::move(dataset), SamplerType(*size),
                                                                    std::move(options));
}

}  // namespace torch::data
