// DataLoader: batches of a dataset, made ahead by threads. They are the same for any number of threads.
#pragma once
#include <functional>
#include <iterator>
#include <optional>

#include <vesta/nn/data/dataset.h>
#include <vesta/nn/data/sampler.h>

namespace vesta::data {

/// Makes a batch from samples by stacking each field. Error(value) names the field and the samples that do not fit.
VESTA_API Sample default_collate(const std::vector<Sample>& samples);

/// The options of a DataLoader, with the names and defaults of Python's arguments.
struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;                         // a new random order in each pass
  std::shared_ptr<const Sampler> sampler = nullptr;  // another order, instead of shuffle
  std::shared_ptr<const BatchSampler> batch_sampler = nullptr;  // other batches, instead of the above and drop_last
  int num_workers = 0;  // threads; 0: the iterating thread does the work
  std::function<Sample(const std::vector<Sample>&)> collate_fn = {};  // default_collate if empty
  bool pin_memory = false;  // batches in memory that a GPU reads from directly
  bool drop_last = false;
  double timeout = 0;  // the longest wait for a batch, in seconds; 0: no limit
  std::function<void(int)> worker_init_fn = {};  // called in each thread with its number
  Generator* generator = nullptr;  // draws the seeds of a pass; null: the default generator
  int prefetch_factor = 2;  // batches that each thread makes ahead
  bool in_order = true;  // false: batches come as they are ready
  MaybeDevice device = {};  // where batches go
};

/// A position in a pass: the seeds of the order and of the samples, and the number of batches given so far.
struct LoaderState {
  uint64_t seed = 0, order = 0;
  int64_t batches = 0;
  bool finished = true;  // the next pass starts from the beginning
  std::vector<int64_t> streams;  // of an iterable dataset: how many samples came from each worker's part
  std::vector<bool> ended;  // and which parts have ended
  int64_t turn = 0;  // the worker whose batch is next
};

class Pass;

/// An iterable over a dataset in batches: `for (const Sample& batch : loader)`.
class VESTA_API DataLoader {
 public:
  /// Makes a loader. Error(value) for options that exclude each other.
  DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  /// Makes a loader of a stream: each worker has a part of it (IterableDataset::iterate), and they give batches in
  /// turn.
  DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options = {});

  /// Returns the number of batches in a pass. Error(value) for a stream that has no size.
  int64_t size() const;

  struct End {};
  /// A position in a running pass. Copies share it. begin() and ++ throw the error of a sample, with the sample's
  /// name; the next ++ continues after it.
  class VESTA_API Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Sample;
    using difference_type = std::ptrdiff_t;
    using pointer = const Sample*;
    using reference = const Sample&;
    explicit Iterator(std::shared_ptr<Pass> pass) : pass_(std::move(pass)) {}
    const Sample& operator*() const { return batch_; }
    const Sample* operator->() const { return &batch_; }
    Iterator& operator++();
    bool operator==(End) const { return over_; }

   private:
    std::shared_ptr<Pass> pass_;
    Sample batch_;
    bool over_ = false;
  };
  /// Starts a pass, or continues where load_state_dict() said, and waits for its first batch. The threads of a pass
  /// end with its last iterator, after the samples they are working on.
  Iterator begin();
  End end() const { return {}; }

  /// Returns the position after the last batch given.
  LoaderState state_dict() const;
  /// Makes the next pass continue at a position, with any number of threads; for a stream the number must be the same.
  void load_state_dict(const LoaderState& state) { resume_ = state; }

 private:
  std::shared_ptr<const Dataset> dataset_;  // or stream_
  std::shared_ptr<const IterableDataset> stream_;
  DataLoaderOptions options_;
  std::shared_ptr<LoaderState> progress_;
  std::optional<LoaderState> resume_;
};

}  // namespace vesta::data
