#include <vesta/nn/data/pass.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include <vesta/core/ops/copy.h>
#include <vesta/nn/data/sample_seed.h>

namespace vesta::data {

Sample delivered(Result result, const DataLoaderOptions& options) {
  if (result.error) std::rethrow_exception(result.error);
  if (options.device)
    for (Tensor& t : result.batch) t = t.to(*options.device);
  return std::move(result.batch);
}

Sample collated(const std::vector<Sample>& samples, const DataLoaderOptions& options) {
  Sample batch = options.collate_fn ? options.collate_fn(samples) : default_collate(samples);
  if (options.pin_memory)
    for (Tensor& t : batch) t = pin_memory(t);
  return batch;
}

std::exception_ptr error_from(const std::string& where) {
  try {
    throw;
  } catch (const Error& e) {
    return std::make_exception_ptr(Error(e.cause(), text(e.message(), " In ", where, ".")));
  } catch (...) {
    return std::current_exception();
  }
}

namespace {

/// A pass over numbered samples: any thread takes the next batch.
class NumberedPass : public Pass {
 public:
  NumberedPass(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, Plan plan,
               std::shared_ptr<LoaderState> progress);
  ~NumberedPass() override;
  std::optional<Sample> next() override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  Result made(int64_t number) const;
  Sample batch_of(int64_t number, int64_t& at) const;
  void work(int thread);
  void end();
  bool ready() const { return options_.in_order ? results_.count(wanted_) > 0 : !results_.empty(); }
  Result await();

  const std::shared_ptr<const Dataset> dataset_;
  const DataLoaderOptions options_;
  const Plan plan_;
  const std::shared_ptr<LoaderState> progress_;

  std::mutex mutex_;
  std::condition_variable room_, arrival_;
  int64_t wanted_, given_ = 0;  // the next batch in order; how many were given out since the pass began
  int64_t taken_;               // the batch that the next free thread makes
  const int64_t first_;
  bool over_ = false;
  std::map<int64_t, Result> results_;
  std::vector<std::thread> threads_;
};

NumberedPass::NumberedPass(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, Plan plan,
                           std::shared_ptr<LoaderState> progress)
    : dataset_(std::move(dataset)),
      options_(options),
      plan_(std::move(plan)),
      progress_(std::move(progress)),
      wanted_(progress_->batches),
      taken_(wanted_),
      first_(wanted_) {
  try {
    for (int i = 0; i < options_.num_workers; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (...) {  // no more threads can be started
    end();
    throw;
  }
}

NumberedPass::~NumberedPass() { end(); }

void NumberedPass::end() {
  {
    Lock lock(mutex_);
    over_ = true;
  }
  room_.notify_all();
  for (std::thread& t : threads_) t.join();
}

/// Makes a batch; `at` is the position of the sample that is being made, for an error's text.
Sample NumberedPass::batch_of(int64_t number, int64_t& at) const {
  const int64_t first = plan_.first(number), last = plan_.last(number);
  if (!options_.collate_fn) {
    const std::vector<int64_t> indices(plan_.numbers.begin() + first, plan_.numbers.begin() + last);
    Sample batch = dataset_->get_batch(indices);
    if (options_.pin_memory)
      for (Tensor& t : batch) t = pin_memory(t);
    if (!batch.empty()) return batch;
  }
  std::vector<Sample> samples;
  for (at = first; at < last; ++at) {
    Generator random(sample_seed(progress_->seed, uint64_t(at), SampleStream::vesta));
    samples.push_back(dataset_->get(plan_.numbers[size_t(at)], random));
  }
  at = -1;
  return collated(samples, options_);
}

Result NumberedPass::made(int64_t number) const {
  Result result;
  int64_t at = -1;
  try {
    result.batch = batch_of(number, at);
  } catch (...) {
    const std::string sample = at < 0 ? "" : text(", sample ", at, " (index ", plan_.numbers[size_t(at)], ")");
    result.error = error_from(text("batch ", number, " of a DataLoader", sample));
  }
  return result;
}

void NumberedPass::work(int thread) {
  std::exception_ptr failed;
  try {
    if (options_.worker_init_fn) options_.worker_init_fn(thread);
  } catch (...) {
    failed = std::current_exception();
  }
  const int64_t ahead = std::max<int64_t>(1, int64_t(options_.num_workers) * options_.prefetch_factor);
  const int64_t batches = plan_.batches();
  for (Lock lock(mutex_);;) {
    room_.wait(lock, [&] { return over_ || taken_ >= batches || taken_ < first_ + given_ + ahead; });
    if (over_ || taken_ >= batches) return;
    const int64_t number = taken_++;
    lock.unlock();
    Result result = failed ? Result{{}, failed} : made(number);
    lock.lock();
    results_.emplace(number, std::move(result));
    arrival_.notify_one();
  }
}

Result NumberedPass::await() {
  if (threads_.empty()) return made(wanted_);
  Lock lock(mutex_);
  if (options_.timeout > 0) {
    const bool came = arrival_.wait_for(lock, std::chrono::duration<double>(options_.timeout), [&] { return ready(); });
    VESTA_CHECK(came, runtime, "DataLoader: timed out after ", options_.timeout, " seconds, waiting for batch ",
                wanted_, ".");
  } else {
    arrival_.wait(lock, [&] { return ready(); });
  }
  auto node = results_.extract(options_.in_order ? wanted_ : results_.begin()->first);
  return std::move(node.mapped());
}

std::optional<Sample> NumberedPass::next() {
  if (first_ + given_ >= plan_.batches()) {
    progress_->finished = true;
    return std::nullopt;
  }
  Result result = await();
  {
    Lock lock(mutex_);
    ++given_, ++wanted_;
  }
  room_.notify_one();
  progress_->batches = first_ + given_;
  return delivered(std::move(result), options_);
}

}  // namespace

std::shared_ptr<Pass> begin_pass(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, Plan plan,
                                 std::shared_ptr<LoaderState> progress) {
  return std::make_shared<NumberedPass>(std::move(dataset), options, std::move(plan), std::move(progress));
}

}  // namespace vesta::data
