// Datasets: examples by index; map() applies a transform to each batch.
#pragma once
#include <torch/data/example.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::data::datasets {

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<optional<T>> = true;
/// Returns what a transform makes of a batch, nothing of none.
template <class Transform, class Batch>
auto transformed(Transform& transform, Batch batch) {
  if constexpr (is_optional<Batch>) {
    using Output = optional<typename Transform::OutputBatchType>;
    return batch ? Output(transform.apply_batch(*std::move(batch))) : Output();
  } else {
    return transform.apply_batch(std::move(batch));
  }
}
template <class T>
struct without_optional {
  using type = T;
};
template <class T>
struct without_optional<optional<T>> {
  using type = T;
};
}  // namespace detail

template <class Source, class AppliedTransform>
class MapDataset;
template <class Source, class AppliedTransform>
MapDataset<Source, AppliedTransform> map(Source dataset, AppliedTransform transform);

/// A dataset that gives whole batches for requests of any type.
template <class Self, class Batch, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = detail::is_optional<Batch>;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  /// Returns the number of examples, nothing where it is not known.
  virtual optional<size_t> size() const = 0;
  template <class TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) & {
    return datasets::map(static_cast<Self&>(*this), std::move(transform));
  }
  template <class TransformType>
  MapDataset<Self, TransformType> map(TransformType transform) && {
    return datasets::map(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

/// A dataset that gives one example for an index.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (const size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

/// A dataset whose request is the size of the next batch.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

namespace detail {
/// What a transform makes of the batches of a dataset, optional where those are.
template <class Source, class Transform>
using Transformed =
    std::conditional_t<is_optional<typename Source::BatchType>, optional<typename Transform::OutputBatchType>,
                       typename Transform::OutputBatchType>;
}  // namespace detail

/// A dataset whose batches go through a transform.
template <class Source, class AppliedTransform>
class MapDataset
    : public BatchDataset<MapDataset<Source, AppliedTransform>, detail::Transformed<Source, AppliedTransform>,
                          typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = AppliedTransform;
  using BatchRequestType = typename Source::BatchRequestType;
  using OutputBatchType = detail::Transformed<Source, AppliedTransform>;
  static_assert(std::is_convertible_v<typename detail::without_optional<typename Source::BatchType>::type,
                                      typename AppliedTransform::InputBatchType>,
                "map(): the transform does not take the batches of this dataset");
  MapDataset(Source dataset, AppliedTransform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}
  OutputBatchType get_batch(BatchRequestType request) override {
    return detail::transformed(transform_, dataset_.get_batch(std::move(request)));
  }
  optional<size_t> size() const noexcept override { return dataset_.size(); }
  /// Begins an epoch of a stateful dataset.
  void reset() {
    if constexpr (Source::is_stateful) dataset_.reset();
  }
  const Source& dataset() noexcept { return dataset_; }
  const AppliedTransform& transform() noexcept { return transform_; }

 private:
  Source dataset_;
  AppliedTransform transform_;
};
template <class Source, class AppliedTransform>
MapDataset<Source, AppliedTransform> map(Source dataset, AppliedTransform transform) {
  return {std::move(dataset), std::move(transform)};
}

/// A dataset that its copies share: all workers of a loader read the same object.
template <class Underlying>
class SharedBatchDataset : public BatchDataset<SharedBatchDataset<Underlying>, typename Underlying::BatchType,
                                               typename Underlying::BatchRequestType> {
 public:
  using BatchType = typename Underlying::BatchType;
  using BatchRequestType = typename Underlying::BatchRequestType;
  SharedBatchDataset(std::shared_ptr<Underlying> shared) : dataset_(std::move(shared)) {}
  BatchType get_batch(BatchRequestType request) override { return dataset_->get_batch(std::move(request)); }
  optional<size_t> size() const override { return dataset_->size(); }
  /// Begins an epoch of a stateful dataset.
  void reset() {
    if constexpr (Underlying::is_stateful) dataset_->reset();
  }
  Underlying& operator*() { return *dataset_; }
  const Underlying& operator*() const { return *dataset_; }
  Underlying* operator->() { return dataset_.get(); }
  const Underlying* operator->() const { return dataset_.get(); }

 private:
  std::shared_ptr<Underlying> dataset_;
};
template <class Underlying, class... Args>
SharedBatchDataset<Underlying> make_shared_dataset(Args&&... args) {
  return std::make_shared<Underlying>(std::forward<Args>(args)...);
}

/// The rows of a tensor.
struct TensorDataset : public Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(const std::vector<Tensor>& tensors) : TensorDataset(vesta::stack(tensors)) {}
  explicit TensorDataset(Tensor tensor_) : tensor(std::move(tensor_)) {}
  TensorExample get(size_t index) override { return tensor[int64_t(index)]; }
  optional<size_t> size() const override { return size_t(tensor.size(0)); }
  Tensor tensor;
};

}  // namespace torch::data::datasets
