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
      message = std::string("Caught exception in DataLoader worker thread. Original message: ") + e.what();
    } catch (...) {
      message = "Caught exception in DataLoader worker thread.";
    }
  }
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

/// The base of loaders over a Source, which gives a batch for each request.
template <class Source, class BatchT, class RequestT>
class DataLoaderBase {
 public:
  using DatasetType = Source;
  using Batch = BatchT;
  using BatchType = BatchT;
  using BatchRequestType = RequestT;

  /// Reads one epoch; all iterators of an epoch stand at the same batch.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = Batch;
    using pointer = Batch*;
    using reference = Batch&;
    using iterator_category = std::input_iterator_tag;
    Iterator() = default;
    explicit Iterator(DataLoaderBase* loader) : loader_(loader) { ++*this; }
    Batch& operator*() const { return *batch_; }
    Batch* operator->() const { return batch_.get(); }
    Iterator& operator++() {
      optional<Batch> next = loader_->next();
      batch_ = next ? std::make_shared<Batch>(std::move(*next)) : nullptr;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.batch_ == b.batch_; }

   private:
    DataLoaderBase* loader_ = nullptr;
    std::shared_ptr<Batch> batch_;  // none at the end
  };

  DataLoaderBase(Source dataset, DataLoaderOptions options)
      : options_(std::move(options)), dataset_(std::move(dataset)) {
    TORCH_CHECK(options_.batch_size() > 0, "DataLoader: expected a batch_size above 0");
  }
  DataLoaderBase(const DataLoaderBase&) = delete;
  virtual ~DataLoaderBase() { join(); }

  /// Begins an epoch. Error: batches of the one before are still under way.
  Iterator begin() {
    TORCH_CHECK(asked_ == given_,
                "Attempted to get a new DataLoader iterator while another iterator is not yet exhausted");
    restart();
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

 protected:
  /// Begins an epoch of the dataset or of its sampler.
  virtual void restart() = 0;
  /// Returns the next request, nothing where the epoch has no more.
  virtual optional<RequestT> get_batch_request() = 0;
  /// Makes batches as they are asked for: what a worker runs until join().
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
  Source dataset_;
  std::vector<std::thread> workers_;

 private:
  struct Job {
    size_t number;
    RequestT request;
  };
  struct Result {
    optional<Batch> batch;  // none at the end of a stateful dataset's epoch
    std::exception_ptr error;
  };

  optional<RequestT> next_request() {
    if (exhausted_) return {};
    optional<RequestT> request = get_batch_request();
    exhausted_ = !request;
    return request;
  }
  optional<Batch> next() {
    if (workers_.empty()) {
      optional<RequestT> request = next_request();
      if (!request) return {};
      optional<Batch> batch = dataset_.get_batch(std::move(*request));
      exhausted_ = !batch;
      return batch;
    }
    const size_t most = options_.max_jobs().value_or(2 * options_.workers());
    std::unique_lock lock(mutex_);
    for (;;) {
      while (asked_ - given_ < most) {
        optional<RequestT> request = next_request();
        if (!request) break;
        jobs_.push_back({asked_++, std::move(*request)});
      }
      changed_.notify_all();
      if (given_ == asked_) return {};
      Result result = take(lock);
      if (result.error) {
        lock.unlock();
        drain();
        throw WorkerException(result.error);
      }
      if (result.batch) return std::move(result.batch);
      exhausted_ = true;
    }
  }
  /// Waits for the next result: of the next number if the order is kept.
  Result take(std::unique_lock<std::mutex>& lock) {
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
    return result;
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

  bool exhausted_ = false, stop_ = false;
  size_t asked_ = 0, given_ = 0;  // batches of this epoch
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<size_t, Result> results_;
};

/// A loader whose requests come from a sampler. Each worker has a copy of the dataset.
template <class Source, class SamplerType>
class StatelessDataLoader
    : public DataLoaderBase<Source, typename Source::BatchType, typename SamplerType::BatchRequestType> {
 public:
  using Base = DataLoaderBase<Source, typename Source::BatchType, typename SamplerType::BatchRequestType>;
  using Request = typename SamplerType::BatchRequestType;
  StatelessDataLoader(Source dataset, SamplerType sampler, DataLoaderOptions options)
      : Base(std::move(dataset), std::move(options)), sampler_(std::move(sampler)) {
    for (size_t i = 0; i < this->options_.workers(); ++i) {
      this->workers_.emplace_back([this, own = this->dataset_]() mutable { this->work(own); });
    }
  }

 private:
  void restart() override { sampler_.reset(this->dataset_.size()); }
  /// Returns the sampler's next request; a last one that is too small may be dropped.
  optional<Request> get_batch_request() override {
    optional<Request> request = sampler_.next(this->options_.batch_size());
    if (request && this->options_.drop_last() && size_of(*request) < this->options_.batch_size()) request.reset();
    return request;
  }
  static size_t size_of(const Request& request) {
    if constexpr (requires { request.size(); }) return request.size();
    else return request;
  }

  SamplerType sampler_;
};

/// A loader of a stateful dataset, which its workers share and which says itself when an epoch ends.
template <class Source>
class StatefulDataLoader
    : public DataLoaderBase<Source, typename Source::BatchType::value_type, typename Source::BatchRequestType> {
 public:
  using Base = DataLoaderBase<Source, typename Source::BatchType::value_type, typename Source::BatchRequestType>;
  StatefulDataLoader(Source dataset, DataLoaderOptions options) : Base(std::move(dataset), std::move(options)) {
    for (size_t i = 0; i < this->options_.workers(); ++i) {
      this->workers_.emplace_back([this] { this->work(this->dataset_); });
    }
  }

 private:
  void restart() override { this->dataset_.reset(); }
  optional<typename Source::BatchRequestType> get_batch_request() override { return this->options_.batch_size(); }
};

/// Makes a loader with a sampler of one's own.
template <class Source, class SamplerType>
  requires(!Source::is_stateful) && requires { typename SamplerType::BatchRequestType; }
std::unique_ptr<StatelessDataLoader<Source, SamplerType>> make_data_loader(Source dataset, SamplerType sampler,
                                                                           DataLoaderOptions options) {
  return std::make_unique<StatelessDataLoader<Source, SamplerType>>(std::move(dataset), std::move(sampler),
                                                                    std::move(options));
}
/// Makes a loader whose sampler is made for the size of the dataset.
template <class SamplerType = samplers::RandomSampler, class Source>
  requires(!Source::is_stateful)
std::unique_ptr<StatelessDataLoader<Source, SamplerType>> make_data_loader(
    Source dataset, DataLoaderOptions options = DataLoaderOptions()) {
  const optional<size_t> size = dataset.size();
  TORCH_CHECK(size.has_value(), "Expected the dataset to be sized in order to construct the Sampler");
  return std::make_unique<StatelessDataLoader<Source, SamplerType>>(std::move(dataset), SamplerType(*size),
                                                                    std::move(options));
}

/// Makes a loader of a stateful dataset.
template <class Source>
  requires(Source::is_stateful)
std::unique_ptr<StatefulDataLoader<Source>> make_data_loader(Source dataset,
                                                             DataLoaderOptions options = DataLoaderOptions()) {
  return std::make_unique<StatefulDataLoader<Source>>(std::move(dataset), std::move(options));
}

}  // namespace torch::data
