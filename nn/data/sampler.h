// Samplers: in which order the samples of a dataset come. An order follows from one seed, so that a pass can be
// resumed.
#pragma once
#include <vector>

#include <vesta/core/ops/ops.h>
#include <vesta/core/random.h>

namespace vesta::data {

/// Is the base of samplers.
class VESTA_API Sampler {
 public:
  virtual ~Sampler() = default;
  /// Counts the numbers of a pass.
  virtual int64_t size() const = 0;
  /// Returns the numbers of the pass with this seed.
  virtual std::vector<int64_t> order(uint64_t seed) const = 0;
  /// Draws the seed of a pass from `generator`, the default one where it is null.
  virtual uint64_t draw(Generator* generator) const;
};

/// Gives 0, 1, 2, ....
class VESTA_API SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(uint64_t seed) const override;
  uint64_t draw(Generator*) const override { return 0; }

 private:
  int64_t size_;
};

/// Gives all numbers below `size` in a random order, or `num_samples` of them: with replacement each drawn anew,
/// without several permutations in a row where there are more than `size`.
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

/// Gives these numbers in a random order.
class VESTA_API SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}
  int64_t size() const override { return int64_t(indices_.size()); }
  std::vector<int64_t> order(uint64_t seed) const override;

 private:
  std::vector<int64_t> indices_;
};

/// Draws numbers 0 to N - 1, each with probability proportional to its weight.
class VESTA_API WeightedRandomSampler : public Sampler {
 public:
  /// Takes N finite weights >= 0, one of them above. Error(value) otherwise, and for more samples without replacement
  /// than positive weights.
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement = true);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order(uint64_t seed) const override;

 private:
  std::vector<double> weights_;
  int64_t num_samples_;
  bool replacement_;
};

/// Gives process `rank` of `num_replicas` its part of an order that all share; call set_epoch() before each pass.
class VESTA_API DistributedSampler : public Sampler {
 public:
  DistributedSampler(int64_t size, int64_t num_replicas, int64_t rank, bool shuffle = true, uint64_t seed = 0,
                     bool drop_last = false);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order(uint64_t seed) const override;
  uint64_t draw(Generator*) const override { return epoch_; }
  /// Chooses the order of the next pass.
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  int64_t size_, num_replicas_, rank_, num_samples_;
  bool shuffle_;
  uint64_t seed_, epoch_ = 0;
};

/// Is the base of what chooses whole batches, for batches that belong together or differ in size.
class VESTA_API BatchSampler {
 public:
  virtual ~BatchSampler() = default;
  /// Counts the batches of a pass.
  virtual int64_t size() const = 0;
  /// Returns the numbers of the samples of each batch of the pass with this seed.
  virtual std::vector<std::vector<int64_t>> order(uint64_t seed) const = 0;
  /// Draws the seed of a pass from `generator`, the default one where it is null.
  virtual uint64_t draw(Generator* generator) const;
};

}  // namespace vesta::data
