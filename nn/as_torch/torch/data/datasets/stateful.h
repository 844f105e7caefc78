// StatefulDataset: a dataset that says itself when an epoch ends.
#pragma once
#include <torch/data/datasets/base.h>
#include <torch/serialize/archive.h>

namespace torch::data::datasets {

/// A dataset that gives batches until the epoch's end, then nothing. All workers of a loader share it, so that with
/// workers get_batch() must be thread-safe.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public BatchDataset<Self, optional<Batch>, BatchRequest> {
 public:
  /// Begins an epoch.
  virtual void reset() = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

template <class... Args>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const StatefulDataset<Args...>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class... Args>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, StatefulDataset<Args...>& dataset) {
  dataset.load(archive);
  return archive;
}

}  // namespace torch::data::datasets
