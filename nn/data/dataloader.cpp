#include <vesta/nn/data/dataloader.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <vesta/nn/data/sample_seed.h>

namespace vesta::data {

Sample default_collate(const std::vector<Sample>& samples) {
  VESTA_CHECK(!samples.empty(), value, "default_collate: expected one sample or more, got none (samples).");
  Sample batch;
  for (size_t field = 0; field < samples[0].size(); ++field) {
    std::vector<Tensor> column;
    for (size_t i = 0; i < samples.size(); ++i) {
      VESTA_CHECK(samples[i].size() == samples[0].size(), value, "default_collate: expected samples of ",
                  samples[0].size(), " fields, got one of ", samples[i].size(), " (sample ", i, " of the batch).");
      const Tensor& t = samples[i][field];
      VESTA_CHECK(std::ranges::equal(t.sizes(), samples[0][field].sizes()), value, "default_collate: field ", field,
                  ": sample 0 of the ", "batch has shape ", samples[0][field].sizes(), ", sample ", i, " ", t.sizes(),
                  ".");
      column.push_back(t);
    }
    batch.push_back(stack(column, 0));
  }
  return batch;
}

/// Is one pass: the order, the batches that are ready, and the threads that make them.
class Pass {
 public:
  Pass(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, std::vector<int64_t> order,
       std::shared_ptr<LoaderState> progress);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Returns the next batch, nothing at the end.
  std::optional<Sample> next();

 private:
  struct Result {
    Sample batch;
    std::exception_ptr error;
  };
  using Lock = std::unique_lock<std::mutex>;

  Result made(int64_t number) const;
  Sample batch_of(int64_t number, int64_t& at) const;
  void work(int thread);
  bool ready() const { return options_.in_order ? results_.count(wanted_) > 0 : !results_.empty(); }
  Result await();

  const std::shared_ptr<const Dataset> dataset_;
  const DataLoaderOptions options_;
  const std::vector<int64_t> order_;
  const std::shared_ptr<LoaderState> progress_;
  const int64_t batches_;

  std::mutex mutex_;
  std::condition_variable room_, arrival_;
  int64_t wanted_, given_ = 0;  // the batch that comes next in order; how many were given out since the pass began
  int64_t taken_;               // the batch that the next free thread makes
  const int64_t first_;
  bool over_ = false;
  std::map<int64_t, Result> results_;
  std::vector<std::thread> threads_;
};

namespace {

int64_t batches_of(int64_t samples, const DataLoaderOptions& o) {
  return o.drop_last ? samples / o.batch_size : (samples + o.batch_size - 1) / o.batch_size;
}

}  // namespace

Pass::Pass(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, std::vector<int64_t> order,
           std::shared_ptr<LoaderState> progress)
    : dataset_(std::move(dataset)),
      options_(options),
      order_(std::move(order)),
      progress_(std::move(progress)),
      batches_(batches_of(int64_t(order_.size()), options_)),
      wanted_(progress_->batches),
      taken_(wanted_),
      first_(wanted_) {
  for (int i = 0; i < options_.num_workers; ++i) threads_.emplace_back([this, i] { work(i); });
}

Pass::~Pass() {
  {
    Lock lock(mutex_);
    over_ = true;
  }
  room_.notify_all();
  for (std::thread& t : threads_) t.join();
}

/// Makes a batch; `at` is the position of the sample that is being made, for an error's text.
Sample Pass::batch_of(int64_t number, int64_t& at) const {
  const int64_t first = number * options_.batch_size;
  const int64_t last = std::min<int64_t>(first + options_.batch_size, int64_t(order_.size()));
  const std::vector<int64_t> indices(order_.begin() + first, order_.begin() + last);
  if (!options_.collate_fn)
    if (Sample batch = dataset_->get_batch(indices); !batch.empty()) return batch;
  std::vector<Sample> samples;
  for (at = first; at < last; ++at) {
    Generator random(sample_seed(progress_->seed, uint64_t(at), SampleStream::vesta));
    samples.push_back(dataset_->get(order_[size_t(at)], random));
  }
  at = -1;
  return options_.collate_fn ? options_.collate_fn(samples) : default_collate(samples);
}

Pass::Result Pass::made(int64_t number) const {
  Result result;
  int64_t at = -1;
  try {
    result.batch = batch_of(number, at);
  } catch (const Error& e) {
    const std::string where = at < 0 ? "" : text(", sample ", at, " (index ", order_[size_t(at)], ")");
    result.error = std::make_exception_ptr(
        Error(e.cause(), text(e.message(), " In batch ", number, " of a DataLoader", where, ".")));
  } catch (...) {
    result.error = std::current_exception();
  }
  return result;
}

void Pass::work(int thread) {
  std::exception_ptr failed;
  try {
    if (options_.worker_init_fn) options_.worker_init_fn(thread);
  } catch (...) {
    failed = std::current_exception();
  }
  const int64_t ahead = std::max<int64_t>(1, int64_t(options_.num_workers) * options_.prefetch_factor);
  for (Lock lock(mutex_);;) {
    room_.wait(lock, [&] { return over_ || taken_ >= batches_ || taken_ < first_ + given_ + ahead; });
    if (over_ || taken_ >= batches_) return;
    const int64_t number = taken_++;
    lock.unlock();
    Result result = failed ? Result{{}, failed} : made(number);
    lock.lock();
    results_.emplace(number, std::move(result));
    arrival_.notify_one();
  }
}

Pass::Result Pass::await() {
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

std::optional<Sample> Pass::next() {
  if (first_ + given_ >= batches_) {
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
  if (result.error) std::rethrow_exception(result.error);
  if (options_.device)
    for (Tensor& t : result.batch) t = t.to(*options_.device);
  return std::move(result.batch);
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  const auto& o = options_;
  VESTA_CHECK(dataset_, value, "DataLoader: expected a dataset, got a null pointer (dataset).");
  VESTA_CHECK(o.batch_size > 0, value, "DataLoader: expected a positive integer, got ", o.batch_size, " (batch_size).");
  VESTA_CHECK(o.num_workers >= 0, value, "DataLoader: expected 0 or more, got ", o.num_workers, " (num_workers).");
  VESTA_CHECK(o.timeout >= 0, value, "DataLoader: expected 0 or more, got ", o.timeout, " (timeout).");
  VESTA_CHECK(o.prefetch_factor >= 0, value, "DataLoader: expected 0 or more, got ", o.prefetch_factor,
              " (prefetch_factor).");
  VESTA_CHECK(!(o.shuffle && o.sampler), value, "DataLoader: sampler is mutually exclusive with shuffle.");
  if (!o.sampler) {
    const int64_t n = dataset_->size();
    if (o.shuffle) options_.sampler = std::make_shared<RandomSampler>(n);
    else options_.sampler = std::make_shared<SequentialSampler>(n);
  }
}

int64_t DataLoader::size() const { return batches_of(options_.sampler->size(), options_); }

DataLoader::Iterator DataLoader::begin() {
  const std::optional<LoaderState> resume = std::exchange(resume_, std::nullopt);
  progress_ = std::make_shared<LoaderState>();
  if (resume && !resume->finished) {
    *progress_ = *resume;
  } else {
    progress_->seed = SequentialSampler(0).Sampler::draw(options_.generator);
    progress_->order = options_.sampler->draw(options_.generator);
  }
  progress_->finished = false;
  auto pass = std::make_shared<Pass>(dataset_, options_, options_.sampler->order(progress_->order), progress_);
  Iterator first(std::move(pass));
  return ++first;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_.clear();  // its memory is there for the next one
  std::optional<Sample> next = pass_->next();
  over_ = !next;
  if (next) batch_ = std::move(*next);
  return *this;
}

LoaderState DataLoader::state_dict() const {
  if (resume_) return *resume_;
  return progress_ ? *progress_ : LoaderState{};
}

}  // namespace vesta::data
