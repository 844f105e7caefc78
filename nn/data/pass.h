// Passes over a dataset: how batches are made, by threads or by the caller. For dataloader.cpp only.
#pragma once
#include <exception>

#include <vesta/nn/data/dataloader.h>

namespace vesta::data {

/// Is one pass that is going on; its threads end with it.
class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual ~Pass() = default;
  /// Returns the next batch, nothing at the end.
  virtual std::optional<Sample> next() = 0;
};

/// Says which samples are in which batch: batch n has numbers[ends[n - 1]] to numbers[ends[n] - 1].
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

/// Is a batch on its way from the thread that made it.
struct Result {
  Sample batch;
  std::exception_ptr error;
};

/// Does with a batch what is done by the caller's thread: takes it to the device.
Sample delivered(Result result, const DataLoaderOptions& options);
/// Makes a batch of samples by the function of the options, and pins it where that is wanted.
Sample collated(const std::vector<Sample>& samples, const DataLoaderOptions& options);
/// Makes the exception that is being handled one that says `where` it comes from.
std::exception_ptr error_from(const std::string& where);

}  // namespace vesta::data
