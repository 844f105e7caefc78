#include <vesta/nn/data/dataloader.h>

#include <algorithm>

#include <vesta/core/ops/index.h>
#include <vesta/nn/data/pass.h>

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

namespace {

void check(const DataLoaderOptions& o) {
  VESTA_CHECK(o.batch_size > 0, value, "DataLoader: expected a positive integer, got ", o.batch_size, " (batch_size).");
  VESTA_CHECK(o.num_workers >= 0, value, "DataLoader: expected 0 or more, got ", o.num_workers, " (num_workers).");
  VESTA_CHECK(o.timeout >= 0, value, "DataLoader: expected 0 or more, got ", o.timeout, " (timeout).");
  VESTA_CHECK(o.prefetch_factor >= 0, value, "DataLoader: expected 0 or more, got ", o.prefetch_factor,
              " (prefetch_factor).");
  VESTA_CHECK(!(o.shuffle && o.sampler), value, "DataLoader: sampler is mutually exclusive with shuffle.");
  VESTA_CHECK(!o.batch_sampler || (o.batch_size == 1 && !o.shuffle && !o.sampler && !o.drop_last), value,
              "DataLoader: batch_sampler is mutually exclusive with batch_size, shuffle, sampler and drop_last.");
}

int64_t batches_of(int64_t samples, const DataLoaderOptions& o) {
  return o.drop_last ? samples / o.batch_size : (samples + o.batch_size - 1) / o.batch_size;
}

/// Returns the plan of batches of the pass whose order has this seed.
Plan plan_of(const DataLoaderOptions& o, uint64_t seed) {
  Plan plan;
  if (o.batch_sampler) {
    for (const std::vector<int64_t>& batch : o.batch_sampler->order(seed)) {
      plan.numbers.insert(plan.numbers.end(), batch.begin(), batch.end());
      plan.ends.push_back(int64_t(plan.numbers.size()));
    }
    return plan;
  }
  plan.numbers = o.sampler->order(seed);
  const int64_t samples = int64_t(plan.numbers.size());
  for (int64_t n = 1; n <= batches_of(samples, o); ++n) plan.ends.push_back(std::min(n * o.batch_size, samples));
  return plan;
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)), options_(std::move(options)) {
  VESTA_CHECK(dataset_, value, "DataLoader: expected a dataset, got a null pointer (dataset).");
  check(options_);
  if (options_.sampler || options_.batch_sampler) return;
  const int64_t n = dataset_->size();
  if (options_.shuffle) options_.sampler = std::make_shared<RandomSampler>(n);
  else options_.sampler = std::make_shared<SequentialSampler>(n);
}

DataLoader::DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options)
    : stream_(std::move(dataset)), options_(std::move(options)) {
  VESTA_CHECK(stream_, value, "DataLoader: expected a dataset, got a null pointer (dataset).");
  check(options_);
  VESTA_CHECK(!options_.shuffle && !options_.sampler && !options_.batch_sampler, value,
              "DataLoader: expected no shuffle, sampler or batch_sampler with an IterableDataset, got one. The dataset "
              "has its own order.");
}

int64_t DataLoader::size() const {
  if (options_.batch_sampler) return options_.batch_sampler->size();
  if (!stream_) return batches_of(options_.sampler->size(), options_);
  const std::optional<int64_t> samples = stream_->size();
  VESTA_CHECK(samples, value, "size: expected an IterableDataset with a size(), got one without.");
  return batches_of(*samples, options_);
}

DataLoader::Iterator DataLoader::begin() {
  const std::optional<LoaderState> resume = std::exchange(resume_, std::nullopt);
  progress_ = std::make_shared<LoaderState>();
  if (resume && !resume->finished) {
    *progress_ = *resume;
  } else {
    progress_->seed = SequentialSampler(0).Sampler::draw(options_.generator);
    if (options_.batch_sampler) progress_->order = options_.batch_sampler->draw(options_.generator);
    else if (options_.sampler) progress_->order = options_.sampler->draw(options_.generator);
  }
  progress_->finished = false;
  std::shared_ptr<Pass> pass = stream_ ? begin_pass(stream_, options_, progress_)
                                       : begin_pass(dataset_, options_, plan_of(options_, progress_->order), progress_);
  Iterator first(std::move(pass));
  return ++first;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_.clear();  // keeps its memory for the next batch
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
