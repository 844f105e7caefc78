#include <vesta/multiprocessing/ddp/bucket.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <vesta/autograd/grad_meta.h>
#include <vesta/core/ops/copy.h>

namespace vesta::ddp {
namespace {

/// Returns whether somebody but `mine` owners of the handle holds the tensor, or a view of it.
bool held_elsewhere(const Tensor& t, uint32_t mine) {
  return t.impl()->use_count() > mine || t.impl()->storage()->use_count() > 1;
}

}  // namespace

Tensor tensor_over(const Tensor& memory, int64_t offset, const Tensor& model) {
  const StoragePtr& whole = memory.impl()->storage();
  auto* held = new StoragePtr(whole);
  auto* start = static_cast<char*>(memory.data_ptr()) + offset * memory.element_size();
  StoragePtr stretch = Storage::wrap(start, size_t(model.numel() * memory.element_size()), memory.device(), held,
                                     [](void* context) { delete static_cast<StoragePtr*>(context); });
  std::vector<int64_t> strides(model.strides().begin(), model.strides().end());
  if (!model.impl()->dense()) {  // a model with holes: the new tensor has none
    int64_t step = 1;
    for (size_t d = strides.size(); d-- > 0;) {
      strides[d] = step;
      step *= std::max<int64_t>(model.sizes()[d], 1);
    }
  }
  return Tensor(TensorImpl::make(std::move(stretch), model.sizes(), strides, 0, memory.dtype(), "ddp"));
}

BucketPlan assign_buckets(const std::vector<Tensor>& tensors, const std::vector<int64_t>& limits,
                          const std::vector<size_t>& indices) {
  VESTA_CHECK(!limits.empty(), value, "assign_buckets: expected at least one limit, got none (limits).");
  struct Open {
    std::vector<size_t> indices;
    int64_t bytes = 0;
    size_t limit = 0;  // which of the limits
  };
  std::map<std::tuple<DType, DeviceType, int>, Open> open;
  std::vector<std::pair<std::vector<size_t>, int64_t>> closed;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    Open& bucket = open[{t.dtype(), t.device().type(), t.device().index()}];
    bucket.indices.push_back(indices.empty() ? i : indices[i]);
    bucket.bytes += t.numel() * t.element_size();
    const int64_t limit = limits[bucket.limit];
    if (bucket.bytes < limit) continue;
    closed.emplace_back(std::exchange(bucket.indices, {}), limit);
    bucket.bytes = 0;
    bucket.limit = std::min(bucket.limit + 1, limits.size() - 1);
  }
  for (auto& [key, bucket] : open) {
    if (!bucket.indices.empty()) closed.emplace_back(std::move(bucket.indices), limits[bucket.limit]);
  }
  if (indices.empty()) {  // with an order given, buckets become ready in the order in which they were closed
    std::ranges::sort(closed, {}, [](const auto& b) { return *std::ranges::min_element(b.first); });
  }
  BucketPlan plan;
  for (auto& [members, limit] : closed) {
    plan.buckets.push_back(std::move(members));
    plan.limits.push_back(limit);
  }
  return plan;
}

Bucket::Bucket(std::vector<Tensor> parameters, std::vector<size_t> indices)
    : parameters_(std::move(parameters)), indices_(std::move(indices)) {
  allocate();
}

void Bucket::allocate() {
  int64_t total = 0;
  for (const Tensor& p : parameters_) total += p.numel();
  const Tensor& first = parameters_.front();
  flat_ = empty_tensor(std::array{total}, first.dtype(), first.device());
  NoGrad off;
  zero_(flat_);
  parts_.clear();
  int64_t offset = 0;
  for (const Tensor& p : parameters_) {
    parts_.push_back(tensor_over(flat_, offset, p));
    offset += p.numel();
  }
}

void Bucket::claim(size_t i) {
  if (autograd::grad(parameters_[i]).is_same(parts_[i]) || !held_elsewhere(parts_[i], 1)) return;
  std::vector<Tensor> old = std::move(parts_);
  allocate();
  for (size_t j = 0; j < old.size(); ++j) adopt(j, old[j]);
}

void Bucket::adopt(size_t i, const Tensor& from) {
  if (!autograd::grad(parameters_[i]).is_same(from)) return;
  copy_into(parts_[i], from, "ddp");
  autograd::set_grad(parameters_[i], parts_[i]);
}

}  // namespace vesta::ddp
