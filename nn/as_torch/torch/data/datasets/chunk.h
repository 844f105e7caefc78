// ChunkDataset: examples that are stored in chunks, such as files. Chunks come in the order of one sampler, the
// examples of what is read at once in the order of another.
#pragma once
#include <torch/arg.h>
#include <torch/data/datasets/stateful.h>
#include <torch/data/samplers.h>

#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace torch::data::datasets {

/// What reads chunks by their numbers.
template <class Example, class Chunk = std::vector<Example>>
class ChunkDataReader {
 public:
  using ChunkType = Chunk;
  using ExampleType = Example;
  virtual ~ChunkDataReader() = default;
  virtual Chunk read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  /// Begins an epoch.
  virtual void reset() = 0;
};

/// How a ChunkDataset reads. Chunks are read when a batch needs them, in the thread that asks: a loader's workers read
/// ahead, so that preloader_count and cache_size are only checked.
struct ChunkDatasetOptions {
  ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                      size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    TORCH_CHECK(preloader_count > 0, "ChunkDataset: expected a preloader_count above 0");
    TORCH_CHECK(batch_size > 0, "ChunkDataset: expected a batch_size above 0");
    TORCH_CHECK(cache_size >= batch_size, "ChunkDataset: expected a cache_size of at least batch_size, ", batch_size,
                ", got ", cache_size);
    TORCH_CHECK(cross_chunk_shuffle_count > 0, "ChunkDataset: expected a cross_chunk_shuffle_count above 0");
  }
  TORCH_ARG(size_t, preloader_count);
  TORCH_ARG(size_t, batch_size);
  TORCH_ARG(size_t, cache_size) = 2048;
  /// Chunks that are read at once, whose examples are mixed.
  TORCH_ARG(size_t, cross_chunk_shuffle_count) = 1;
};

template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                                                  typename ChunkReader::BatchType, size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = optional<UnwrappedBatchType>;
  using BatchRequestType = size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;
  using Policy = std::function<void(UnwrappedBatchType&)>;

  /// `preprocessing_policy` changes what was read at once before it is sampled.
  ChunkDataset(ChunkReader chunk_reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options, Policy preprocessing_policy = {})
      : reader_(std::move(chunk_reader)),
        chunks_(std::move(chunk_sampler)),
        examples_(std::move(example_sampler)),
        options_(std::move(options)),
        policy_(std::move(preprocessing_policy)) {}

  BatchType get_batch(size_t batch_size) override {
    TORCH_CHECK(batch_size == options_.batch_size(), "ChunkDataset: expected a request of ", options_.batch_size(),
                " examples, the batch size that the dataset was made with, got ", batch_size);
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(begun_, "Dataset needs to call reset() before calling get_batch().");
    while (ready_.size() < batch_size && read_next()) {}
    if (ready_.empty()) return {};
    const auto end = ready_.begin() + std::ptrdiff_t(std::min(batch_size, ready_.size()));
    UnwrappedBatchType batch(std::make_move_iterator(ready_.begin()), std::make_move_iterator(end));
    ready_.erase(ready_.begin(), end);
    return batch;
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }
  void reset() override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(loaded_, false)) {
      reader_.reset();
      chunks_.reset(reader_.chunk_count());
    }
    ready_.clear();
    begun_ = true;
  }
  /// Returns nothing: the number of examples is not known before all are read.
  optional<size_t> size() const override { return {}; }
  ChunkSampler& chunk_sampler() { return chunks_; }
  /// Writes which chunks are still to be read.
  void save(serialize::OutputArchive& archive) const override {
    const std::lock_guard lock(mutex_);
    chunks_.save(archive);
  }
  /// Reads it: the next epoch begins with these chunks.
  void load(serialize::InputArchive& archive) override {
    const std::lock_guard lock(mutex_);
    chunks_.load(archive);
    loaded_ = true;
  }

 private:
  /// Reads the next chunks and lays their examples ready; returns false at the end of the epoch.
  bool read_next() {
    const auto numbers = chunks_.next(options_.cross_chunk_shuffle_count());
    if (!numbers) return false;
    UnwrappedBatchType read;
    for (const size_t i : *numbers) {
      auto chunk = reader_.read_chunk(i);
      std::move(chunk.begin(), chunk.end(), std::back_inserter(read));
    }
    if (policy_) policy_(read);
    if (read.empty()) return true;
    examples_.reset(read.size());
    const auto order = examples_.next(read.size());
    for (const size_t i : *order) {
      TORCH_CHECK_INDEX(i < read.size(), "ChunkDataset: the sampler of examples gave ", i, " for ", read.size());
      ready_.push_back(std::move(read[i]));
    }
    return true;
  }

  ChunkReader reader_;
  ChunkSampler chunks_;
  ExampleSampler examples_;
  ChunkDatasetOptions options_;
  Policy policy_;
  mutable std::mutex mutex_;
  std::deque<typename UnwrappedBatchType::value_type> ready_;
  bool begun_ = false, loaded_ = false;
};

}  // namespace torch::data::datasets
