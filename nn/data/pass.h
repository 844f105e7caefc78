// Passes over a dataset: how batches are made, by threads or by the caller. For dataloader.cpp only.
#pragma once
#include <exception>

#include <vesta/nn/data/dataloader.h>

namespace vesta::data {

/// One running pass; its threads end with it.
class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual ~Pass() = default;
  /// Returns the next batch, or nothing at the end.
  virtual std::optional<Sample> next() = 0;
};

/// The samples of each batch: batch n has numbers[ends[n - 1]] to numbers[ends[n] - 1].
struct Plan {
  std::vector<int64_t> numbers, ends;

  int64_t batches() const { return int64_t(ends.size()); }
  int64_t first(int64_t batch) const { return batch == 0 ? 0 : ends[size_t(batch - 1)]; }
  int64_t last(int64_t batch) const { return ends[size_t(batch)]; }
};

std::shared_ptr<Pass> begin_pass(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options, Plan plan,
                                 std::shared_ptr<LoaderState> progress);
std::shared_ptr<Pass> begin_pass(std::shared_ptr<const IterableDataset> dataset, const DataLoaderOptions& options,
                                 std::shared_ptr<LoaderState> progress);

/// A batch on its way from the thread that made it.
struct Result {
  Sample batch;
  std::exception_ptr error;
};

/// Does the part of a batch that belongs to the caller's thread: moves it to the device.
Sample delivered(Result result, const DataLoaderOptions& options);
/// Makes a batch from samples with the collate function of the options, and pins it if they say so.
Sample collated(const std::vector<Sample>& samples, const DataLoaderOptions& options);
/// Returns the exception being handled with `where` it comes from added.
std::exception_ptr error_from(const std::string& where);

}  // namespace vesta::data
