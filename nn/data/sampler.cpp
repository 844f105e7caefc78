#include <vesta/nn/data/sampler.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/random.h>

namespace vesta::data {
namespace {

std::vector<int64_t> numbers_of(const Tensor& t) {
  const Tensor flat = contiguous(t);
  const int64_t* p = flat.data_ptr<int64_t>();
  return {p, p + flat.numel()};
}
std::vector<int64_t> permutation(int64_t n, uint64_t seed) {
  Generator own(seed);
  return numbers_of(randperm(n, &own));
}

}  // namespace

uint64_t Sampler::draw(Generator* generator) const {
  return uint64_t(random_(empty({}, DType::int64), {}, {}, generator).item<int64_t>());
}

uint64_t BatchSampler::draw(Generator* generator) const { return SequentialSampler(0).Sampler::draw(generator); }

std::vector<int64_t> SequentialSampler::order(uint64_t) const {
  std::vector<int64_t> r(static_cast<size_t>(size_));
  std::iota(r.begin(), r.end(), 0);
  return r;
}

RandomSampler::RandomSampler(int64_t size, bool replacement, int64_t num_samples)
    : size_(size), replacement_(replacement), num_samples_(num_samples < 0 ? size : num_samples) {
  VESTA_CHECK(size_ > 0 && num_samples_ > 0, value, "RandomSampler: expected a positive number of samples, got ",
              num_samples_, " of ", size_, " (num_samples).");
}
std::vector<int64_t> RandomSampler::order(uint64_t seed) const {
  if (replacement_) {
    Generator own(seed);
    return numbers_of(randint(0, size_, {num_samples_}, &own, DType::int64));
  }
  std::vector<int64_t> r;
  for (uint64_t pass = 0; int64_t(r.size()) < num_samples_; ++pass) {
    const std::vector<int64_t> more = permutation(size_, seed + pass);
    r.insert(r.end(), more.begin(), more.end());
  }
  r.resize(size_t(num_samples_));
  return r;
}

std::vector<int64_t> SubsetRandomSampler::order(uint64_t seed) const {
  std::vector<int64_t> r = permutation(size(), seed);
  for (int64_t& i : r) i = indices_[size_t(i)];
  return r;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, bool replacement)
    : weights_(std::move(weights)), num_samples_(num_samples), replacement_(replacement) {
  const auto positive = std::count_if(weights_.begin(), weights_.end(), [](double w) { return w > 0; });
  const bool usable =
      std::all_of(weights_.begin(), weights_.end(), [](double w) { return w >= 0 && std::isfinite(w); });
  VESTA_CHECK(usable && positive > 0, value,
              "WeightedRandomSampler: expected finite weights >= 0, not all 0, got others (weights).");
  VESTA_CHECK(num_samples_ > 0 && (replacement_ || num_samples_ <= positive), value,
              "WeightedRandomSampler: expected num_samples from 1 to the number of positive weights, ", positive,
              ", got ", num_samples_, " (num_samples). Pass replacement = true.");
}
/// Draws with replacement by inverting the cumulative weights; without, by the largest log(u) / weight (Efraimidis and
/// Spirakis, "Weighted random sampling with a reservoir", 2006).
std::vector<int64_t> WeightedRandomSampler::order(uint64_t seed) const {
  Generator own(seed);
  const int64_t draws = replacement_ ? num_samples_ : int64_t(weights_.size());
  const Tensor uniform = rand({draws}, &own, DType::float64);
  const double* u = uniform.data_ptr<double>();
  std::vector<int64_t> r(static_cast<size_t>(num_samples_));
  if (replacement_) {
    std::vector<double> sums(weights_.size());
    std::partial_sum(weights_.begin(), weights_.end(), sums.begin());
    int64_t last = int64_t(weights_.size()) - 1;
    while (weights_[size_t(last)] == 0) --last;  // rounding must not go beyond
    for (size_t i = 0; i < r.size(); ++i)
      r[i] = std::min<int64_t>(last, std::upper_bound(sums.begin(), sums.end(), u[i] * sums.back()) - sums.begin());
    return r;
  }
  std::vector<int64_t> all(weights_.size());
  std::iota(all.begin(), all.end(), 0);
  const auto key = [&](int64_t i) {
    const double w = weights_[size_t(i)];
    return w > 0 ? std::log(1.0 - u[i]) / w : -INFINITY;
  };
  std::stable_sort(all.begin(), all.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
  std::copy_n(all.begin(), r.size(), r.begin());
  return r;
}

DistributedSampler::DistributedSampler(int64_t size, int64_t num_replicas, int64_t rank, bool shuffle, uint64_t seed,
                                       bool drop_last)
    : size_(size), num_replicas_(num_replicas), rank_(rank), shuffle_(shuffle), seed_(seed) {
  VESTA_CHECK(num_replicas > 0 && rank >= 0 && rank < num_replicas, value,
              "DistributedSampler: expected a rank from 0 to ", num_replicas - 1, ", got ", rank, " (rank).");
  num_samples_ = drop_last ? size / num_replicas : (size + num_replicas - 1) / num_replicas;
}
std::vector<int64_t> DistributedSampler::order(uint64_t seed) const {
  if (num_samples_ == 0) return {};
  const std::vector<int64_t> all = shuffle_ ? permutation(size_, seed_ + seed) : SequentialSampler(size_).order(0);
  std::vector<int64_t> r;
  for (int64_t i = 0; i < num_samples_; ++i) r.push_back(all[size_t((rank_ + i * num_replicas_) % size_)]);
  return r;
}

}  // namespace vesta::data
