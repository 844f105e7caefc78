// Samplers: the order in which the samples of a dataset come. An order depends on one seed alone, so a pass can be
// resumed.
#pragma once
#include <vector>

#include <vesta/core/random.h>

namespace vesta::data {

/// The base of samplers.
class VESTA_API Sampler {
 public:
  virtual ~Sampler() = default;
  /// Returns the number of samples in a pass.
  virtual int64_t size() const = 0;
  /// Returns the sample numbers of the pass with this seed.
  virtual std::vector<int64_t> order(uint64_t seed) const = 0;
  /// Draws the seed of a pass from `generator`, or from the default one if it is null.
  virtual uint64_t draw(Generator* generator) const;
};

/// The order 0, 1, 2, ....
class VESTA_API SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed) const override;
  uint64_t draw(Generator*) const override { return 0; }

 private:
  int64_t size_;
};

/// All numbers below `size` in a random order, or `num_samples` of them. With replacement each is drawn anew; without,
/// there are several permutations in a row if `num_samples` is more than `size`.
class VESTA_API RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t size, bool replacement = false, int64_t num_samples = -1);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order(uint64_t seed) const override;

 private:
  int64_t size_;
  bool replacement_;
  int64_t num_samples_;
};

/// The given numbers in a random order.
class VESTA_API SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}
  int64_t size() const override { return int64_t(indices_.size()); }
  std::vector<int64_t> order(uint64_t seed) const override;

 private:
  std::vector<int64_t> indices_;
};

/// Numbers 0 to N - 1, each drawn with probability proportional to its weight.
class VESTA_API WeightedRandomSampler : public Sampler {
 public:
  /// Takes N finite weights >= 0, at least one above 0. Error(value) otherwise, and for more samples without
  /// replacement than positive weights.
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement = true);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order(uint64_t seed) const override;

 private:
  std::vector<double> weights_;
  int64_t num_samples_;
  bool replacement_;
};

/// The part of process `rank` of `num_replicas` in an order that all share; call set_epoch() before each pass.
class VESTA_API DistributedSampler : public Sampler {
 public:
  DistributedSampler(int64_t size, int64_t num_replicas, int64_t rank, bool shuffle = true, uint64_t seed = 0,
                     bool drop_last = false);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order(uint64_t seed) const override;
  uint64_t draw(Generator*) const override { return epoch_; }
  /// Sets the epoch, which chooses the order of the next pass.
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  int64_t size_, num_replicas_, rank_, num_samples_;
  bool shuffle_;
  uint64_t seed_, epoch_ = 0;
};

/// The base of samplers that choose whole batches, for samples that belong together or batches that differ in size.
class VESTA_API BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  /// Returns the number of batches in a pass.
  virtual int64_t size() const = 0;
  /// Returns the sample numbers of each batch of the pass with this seed.
  virtual std::vector<std::vector<int64_t>> order(uint64_t seed) const = 0;
  /// Draws the seed of a pass from `generator`, or from the default one if it is null.
  virtual uint64_t draw(Generator* generator) const;
};

}  // namespace vesta::data
