// Samplers: the order in which a loader asks a dataset for its examples.
#pragma once
#include <torch/factories.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace torch::data::samplers {

template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  /// Begins anew, optionally for another number of examples.
  virtual void reset(optional<size_t> new_size) = 0;
  /// Returns the next request, nothing at the end.
  virtual optional<BatchRequest> next(size_t batch_size) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

/// A sampler over a list of indices that a class lays down anew for each epoch.
class ListSampler : public Sampler<> {
 public:
  optional<std::vector<size_t>> next(size_t batch_size) override {
    if (at_ >= order_.size()) return {};
    const size_t end = std::min(order_.size(), at_ + batch_size);
    std::vector<size_t> batch(order_.begin() + std::ptrdiff_t(at_), order_.begin() + std::ptrdiff_t(end));
    at_ = end;
    return batch;
  }
  void save(serialize::OutputArchive& archive) const override {
    archive.write("index", IValue(int64_t(at_)));
    archive.write("indices", IValue(std::vector<int64_t>(order_.begin(), order_.end())));
  }
  void load(serialize::InputArchive& archive) override {
    IValue at, order;
    archive.read("index", at), archive.read("indices", order);
    at_ = size_t(at.toInt());
    const std::vector<int64_t> read = order.toIntVector();
    order_.assign(read.begin(), read.end());
  }
  size_t index() const noexcept { return at_; }

 protected:
  std::vector<size_t> order_;
  size_t at_ = 0;
};

/// All indices once, in random order.
class RandomSampler : public ListSampler {
 public:
  explicit RandomSampler(int64_t size, Dtype /*index_dtype*/ = kInt64) { lay(size); }
  void reset(optional<size_t> new_size = {}) override { lay(int64_t(new_size.value_or(order_.size()))); }

 private:
  void lay(int64_t size) {
    const Tensor order = torch::randperm(size);
    const int64_t* values = order.const_data_ptr<int64_t>();
    order_.assign(values, values + size);
    at_ = 0;
  }
};

/// All indices once, ascending.
class SequentialSampler : public ListSampler {
 public:
  explicit SequentialSampler(size_t size) { reset(size); }
  void reset(optional<size_t> new_size = {}) override {
    order_.resize(new_size.value_or(order_.size()));
    std::iota(order_.begin(), order_.end(), size_t(0));
    at_ = 0;
  }
};

/// The share that one of several processes has of all indices.
template <class BatchRequest = std::vector<size_t>>
class DistributedSampler : public ListSampler {
 public:
  DistributedSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true)
      : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {
    TORCH_CHECK_VALUE(rank < num_replicas, "DistributedSampler: expected a rank below ", num_replicas, ", got ", rank);
  }
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }
  size_t local_sample_count() const {
    return allow_duplicates_ ? (size_ + num_replicas_ - 1) / num_replicas_ : size_ / num_replicas_;
  }

 protected:
  void share(std::vector<size_t> all) {
    const size_t mine = local_sample_count(), first = mine * rank_;
    order_.clear();
    for (size_t i = first; i < first + mine && !all.empty(); ++i) order_.push_back(all[i % all.size()]);
    at_ = 0;
  }
  size_t size_, num_replicas_, rank_, epoch_ = 0;
  bool allow_duplicates_;
};
class DistributedRandomSampler : public DistributedSampler<> {
 public:
  explicit DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0, bool allow_duplicates = true)
      : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
    reset(size);
  }
  void reset(optional<size_t> new_size = {}) override {
    size_ = new_size.value_or(size_);
    std::vector<size_t> all(size_);
    std::iota(all.begin(), all.end(), size_t(0));
    std::shuffle(all.begin(), all.end(), std::mt19937(unsigned(epoch_)));
    share(std::move(all));
  }
};
class DistributedSequentialSampler : public DistributedSampler<> {
 public:
  explicit DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                                        bool allow_duplicates = true)
      : DistributedSampler(size, num_replicas, rank, allow_duplicates) {
    reset(size);
  }
  void reset(optional<size_t> new_size = {}) override {
    size_ = new_size.value_or(size_);
    std::vector<size_t> all(size_);
    std::iota(all.begin(), all.end(), size_t(0));
    share(std::move(all));
  }
};

/// The sizes of batches of a stream, up to a number of examples in all.
class StreamSampler : public Sampler<size_t> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  void reset(optional<size_t> new_size = {}) override {
    epoch_size_ = new_size.value_or(epoch_size_);
    given_ = 0;
  }
  optional<size_t> next(size_t batch_size) override {
    if (given_ >= epoch_size_) return {};
    const size_t size = std::min(batch_size, epoch_size_ - given_);
    given_ += size;
    return size;
  }
  void save(serialize::OutputArchive& archive) const override {
    archive.write("examples_retrieved_so_far", IValue(int64_t(given_)));
  }
  void load(serialize::InputArchive& archive) override {
    IValue given;
    archive.read("examples_retrieved_so_far", given);
    given_ = size_t(given.toInt());
  }

 private:
  size_t epoch_size_, given_ = 0;
};

}  // namespace torch::data::samplers
