// Datasets for C++ programs: numbered samples. A tour:
//
//   struct Noisy : data::Dataset {
//     Tensor images, labels;
//     int64_t size() const override { return images.size(0); }
//     data::Sample get(int64_t index, Generator& random) const override {
//       Tensor image = images.select(0, index);
//       return {image + randn(image.sizes(), &random) * 0.1, labels.select(0, index)};
//     }
//   };
//   data::DataLoader loader(std::make_shared<Noisy>(...), {.batch_size = 32, .shuffle = true, .num_workers = 4});
//   for (const data::Sample& batch : loader) train(batch[0], batch[1]);
//
// Several threads call get() at the same time, so it must not change the dataset. It draws from the generator that it
// is given and from no other: that one starts, for each sample, from the seed of the pass and the sample's position, so
// that batches are the same for any number of threads.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <vesta/core/random.h>

namespace vesta::data {

/// One sample, or one batch: a tensor per field.
using Sample = std::vector<Tensor>;

/// The base of datasets.
class VESTA_API Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  /// Returns the number of samples.
  virtual int64_t size() const = 0;
  /// Returns sample `index`, 0 to size() - 1; what is random in it comes from `random`.
  virtual Sample get(int64_t index, Generator& random) const = 0;
  /// Returns the batch of these samples if one lookup can make it; else an empty one, and the loader stacks samples.
  virtual Sample get_batch(const std::vector<int64_t>& indices) const;
};

/// A source of samples one after the other, for one worker in one pass.
class VESTA_API Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;
  /// Returns the next sample, or nothing at the end; what is random in it comes from `random`.
  virtual std::optional<Sample> next(Generator& random) = 0;
  /// Skips the first `samples` samples at once and returns true; if it returns false, they are read and dropped.
  virtual bool seek(int64_t samples);
};

/// The base of datasets whose samples have no numbers: files that are read in sequence, data from a network.
class VESTA_API IterableDataset {
 public:
  IterableDataset() = default;
  IterableDataset(const IterableDataset&) = delete;
  IterableDataset& operator=(const IterableDataset&) = delete;
  virtual ~IterableDataset() = default;
  /// Starts the part of worker `worker` of `workers` (0 of 1 without threads), from its first sample.
  virtual std::unique_ptr<Stream> iterate(int worker, int workers) const = 0;
  /// Returns the number of samples in all parts, if that is known.
  virtual std::optional<int64_t> size() const;
};

/// A dataset whose samples are the rows of tensors [N, ...].
class VESTA_API TensorDataset : public Dataset {
 public:
  /// Takes one or more tensors of the same first size. Error(value) otherwise.
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override;
  Sample get(int64_t index, Generator& random) const override;
  Sample get_batch(const std::vector<int64_t>& indices) const override;
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

/// A dataset of some samples of another dataset.
class VESTA_API Subset : public Dataset {
 public:
  /// Takes the numbers of the samples in `dataset`. Error(index) for a number that it does not have.
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> indices);
  int64_t size() const override { return int64_t(indices_.size()); }
  Sample get(int64_t index, Generator& random) const override;
  Sample get_batch(const std::vector<int64_t>& indices) const override;
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<int64_t> indices_;
};

/// A dataset of the samples of several datasets, one after the other.
class VESTA_API ConcatDataset : public Dataset {
 public:
  /// Takes one or more datasets. Error(value) otherwise.
  explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> datasets);
  int64_t size() const override { return cumulative_sizes_.back(); }
  Sample get(int64_t index, Generator& random) const override;

 private:
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::vector<int64_t> cumulative_sizes_;
};

/// Splits a dataset at random into subsets of these sizes, which must sum to its size. Error(value) otherwise.
VESTA_API std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> dataset,
                                                            const std::vector<int64_t>& lengths,
                                                            Generator* generator = nullptr);

}  // namespace vesta::data
