#include <vesta/nn/data/dataset.h>

#include <algorithm>
#include <numeric>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/view.h>

namespace vesta::data {
namespace {

Tensor as_tensor(const std::vector<int64_t>& numbers) {
  Tensor t = empty({int64_t(numbers.size())}, DType::int64);
  std::copy(numbers.begin(), numbers.end(), t.data_ptr<int64_t>());
  return t;
}

void check_index(int64_t index, int64_t size, const char* op) {
  VESTA_CHECK(index >= 0 && index < size, index, op, ": expected an index below ", size, ", got ", index, " (index).");
}

}  // namespace

Sample Dataset::get_batch(const std::vector<int64_t>&) const { return {}; }

bool Stream::seek(int64_t) { return false; }
std::optional<int64_t> IterableDataset::size() const { return std::nullopt; }

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  VESTA_CHECK(!tensors_.empty(), value, "TensorDataset: expected one tensor or more, got none (tensors).");
  for (const Tensor& t : tensors_)
    VESTA_CHECK(t.dim() > 0 && t.size(0) == tensors_[0].size(0), value,
                "TensorDataset: expected tensors of the same first size, got ", t.sizes(), " and ", tensors_[0].sizes(),
                " (tensors).");
}
int64_t TensorDataset::size() const { return tensors_[0].size(0); }
Sample TensorDataset::get(int64_t index, Generator&) const {
  check_index(index, size(), "TensorDataset");
  Sample sample;
  for (const Tensor& t : tensors_) sample.push_back(select(t, 0, index));
  return sample;
}
Sample TensorDataset::get_batch(const std::vector<int64_t>& indices) const {
  const Tensor rows = as_tensor(indices);
  Sample batch;
  for (const Tensor& t : tensors_) batch.push_back(index_select(t, 0, rows.to(t.device())));
  return batch;
}

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> indices)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (int64_t i : indices_) check_index(i, dataset_->size(), "Subset");
}
Sample Subset::get(int64_t index, Generator& random) const {
  check_index(index, size(), "Subset");
  return dataset_->get(indices_[size_t(index)], random);
}
Sample Subset::get_batch(const std::vector<int64_t>& indices) const {
  std::vector<int64_t> inner(indices.size());
  std::transform(indices.begin(), indices.end(), inner.begin(), [&](int64_t i) { return indices_.at(size_t(i)); });
  return dataset_->get_batch(inner);
}

ConcatDataset::ConcatDataset(std::vector<std::shared_ptr<const Dataset>> datasets) : datasets_(std::move(datasets)) {
  VESTA_CHECK(!datasets_.empty(), value, "ConcatDataset: expected one dataset or more, got none (datasets).");
  int64_t total = 0;
  for (const auto& d : datasets_) cumulative_sizes_.push_back(total += d->size());
}
Sample ConcatDataset::get(int64_t index, Generator& random) const {
  check_index(index, size(), "ConcatDataset");
  const auto end = std::upper_bound(cumulative_sizes_.begin(), cumulative_sizes_.end(), index);
  const size_t which = size_t(end - cumulative_sizes_.begin());
  return datasets_[which]->get(index - (which ? cumulative_sizes_[which - 1] : 0), random);
}

std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> dataset,
                                                  const std::vector<int64_t>& lengths, Generator* generator) {
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  VESTA_CHECK(total == dataset->size(), value, "random_split: expected lengths that sum to ", dataset->size(), ", got ",
              IntSpan(lengths.data(), lengths.size()), " (lengths).");
  const Tensor order = contiguous(randperm(total, generator));
  const int64_t* next = order.data_ptr<int64_t>();
  std::vector<std::shared_ptr<Subset>> parts;
  for (int64_t n : lengths) {
    VESTA_CHECK(n >= 0, value, "random_split: expected lengths of 0 or more, got ", n, " (lengths).");
    parts.push_back(std::make_shared<Subset>(dataset, std::vector<int64_t>(next, next + n)));
    next += n;
  }
  return parts;
}

}  // namespace vesta::data
