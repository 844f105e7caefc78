// DataLoader: batches of a dataset, made by threads ahead of their use, the same ones for any number of threads.
#pragma once
#include <functional>
#include <iterator>
#include <optional>

#include <vesta/nn/data/dataset.h>
#include <vesta/nn/data/sampler.h>

namespace vesta::data {

/// Makes a batch of samples: stacks each field. Error(value) that names the field and the samples that do not fit.
VESTA_API Sample default_collate(const std::vector<Sample>& samples);

/// Has the names and the defaults of Python's arguments.
struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;                         // a new random order in each pass
  std::shared_ptr<const Sampler> sampler = nullptr;  // another order, instead of shuffle
  std::shared_ptr<const BatchSampler> batch_sampler = nullptr;  // other batches, instead of what is above and drop_last
  int num_workers = 0;  // threads; 0: the one that iterates
  std::function<Sample(const std::vector<Sample>&)> collate_fn = {};  // default_collate where empty
  bool pin_memory = false;  // batches in memory that a GPU reads from directly
  bool drop_last = false;
  double timeout = 0;  // seconds to wait for a batch, at most; 0: as long as it takes
  std::function<void(int)> worker_init_fn = {};  // called in each thread with its number
  Generator* generator = nullptr;  // of the seeds of a pass; the default one where null
  int prefetch_factor = 2;  // batches that each thread makes ahead
  bool in_order = true;  // false: batches come as they are ready
  MaybeDevice device = {};  // where batches go
};

/// Is a place in a pass: what the order and the samples followed from, and how many batches have been given.
struct LoaderState {
  uint64_t seed = 0, order = 0;
  int64_t batches = 0;
  bool finished = true;  // the next pass starts afresh
  std::vector<int64_t> streams;  // of an iterable dataset: how many samples came from each worker's part
  std::vector<bool> ended;  // and which parts are over
  int64_t turn = 0;  // whose batch is the next
};

class Pass;

/// Iterates over a dataset in batches: `for (const Sample& batch : loader)`.
class VESTA_API DataLoader {
 public:
  /// Error(value) for options that exclude each other.
  DataLoader(std::shared_ptr<const Dataset> dataset, DataLoaderOptions options = {});
  /// The same for a stream: each worker has a part of it (IterableDataset::iterate), and they give batches in turn.
  DataLoader(std::shared_ptr<const IterableDataset> dataset, DataLoaderOptions options = {});

  /// Counts the batches of a pass. Error(value) for a stream that has no size.
  int64_t size() const;

  struct End {};
  /// Is a place in a pass that is going on. Copies are the same place. An error in a sample comes from begin() or ++,
  /// with the sample's name; ++ goes on behind it.
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
  /// Starts a pass, or goes on where load_state_dict() said, and waits for its first batch. Threads of a pass end with
  /// its last iterator, after the samples that they are at.
  Iterator begin();
  End end() const { return {}; }

  /// Returns the place behind the batch that came last.
  LoaderState state_dict() const;
  /// Lets the next pass go on at a place, with any number of threads; that of a stream with as many as it had.
  void load_state_dict(const LoaderState& state) { resume_ = state; }

 private:
  std::shared_ptr<const Dataset> dataset_;  // or
  std::shared_ptr<const IterableDataset> stream_;
  DataLoaderOptions options_;
  std::shared_ptr<LoaderState> progress_;
  std::optional<LoaderState> resume_;
};

}  // namespace vesta::data
