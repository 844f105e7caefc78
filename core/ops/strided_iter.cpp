#include <vesta/core/ops/strided_iter.h>

#include <algorithm>
#include <numeric>

namespace vesta {

PlanBuilder::PlanBuilder(IntSpan shape, Device device) : ndim_(int(shape.size())) {
  plan_.device = device;
  plan_.numel = 1;
  for (int i = 0; i < ndim_; ++i) {  // innermost first
    sizes_[i] = shape[size_t(ndim_ - 1 - i)];
    plan_.numel *= sizes_[i];
  }
}

void PlanBuilder::add(PointwisePlan::Operand& o, int slot, const Tensor& t) {
  VESTA_ASSERT(t.device() == plan_.device);
  o.data = t.impl()->data(), o.dtype = t.dtype();
  int64_t item = itemsize(t.dtype());
  int lead = ndim_ - int(t.dim());
  for (int i = 0; i < ndim_; ++i) {
    int d = ndim_ - 1 - i - lead;
    const bool repeats = d < 0 || (t.sizes()[size_t(d)] == 1 && sizes_[i] != 1);
    strides_[slot][i] = repeats || plan_.numel == 0 ? 0 : t.strides()[size_t(d)] * item;
  }
}

void PlanBuilder::set_out(const Tensor& t) { add(plan_.out, 0, t); }

void PlanBuilder::add_input(const Tensor& t) {
  add(plan_.in[plan_.inputs++], operands_, t);
  ++operands_;
}

void PlanBuilder::add_immediate(char* value, DType d) {
  auto& o = plan_.in[plan_.inputs++];
  o.data = value, o.dtype = d, o.immediate = true;
  std::fill_n(strides_[operands_++], ndim_, 0);
}

/// Orders dimension `a` before (inside) `b`, by the first operand that tells them apart.
bool PlanBuilder::before(int a, int b) const {
  for (int k = 0; k < operands_; ++k) {
    int64_t x = strides_[k][a], y = strides_[k][b];
    if (x != y && x != 0 && y != 0) return x < y;
  }
  return a < b;
}

PointwisePlan& PlanBuilder::finish() {
  // Insertion sort: few dimensions, nearly always in order already. Sizes of 1 say nothing and are dropped.
  int order[kMaxDims], n = 0;
  for (int i = 0; i < ndim_; ++i) {
    if (sizes_[i] == 1) continue;
    int at = n++;
    while (at > 0 && before(i, order[at - 1])) {
      order[at] = order[at - 1];
      --at;
    }
    order[at] = i;
  }
  int64_t sizes[kMaxDims], strides[1 + kMaxInputs][kMaxDims];
  int m = 0;
  for (int i = 0; i < n; ++i) {
    int d = order[i];
    bool merges = m > 0;
    for (int k = 0; merges && k < operands_; ++k) merges = strides_[k][d] == strides[k][m - 1] * sizes[m - 1];
    if (merges) {
      sizes[m - 1] *= sizes_[d];
    } else {
      sizes[m] = sizes_[d];
      for (int k = 0; k < operands_; ++k) strides[k][m] = strides_[k][d];
      ++m;
    }
  }
  std::copy_n(sizes, m, sizes_);
  for (int k = 0; k < operands_; ++k) std::copy_n(strides[k], m, strides_[k]);
  plan_.ndim = m, plan_.sizes = sizes_;
  plan_.out.strides = strides_[0];
  for (int i = 0; i < plan_.inputs; ++i) plan_.in[i].strides = strides_[1 + i];
  return plan_;
}

Dims strides_like(IntSpan shape, std::span<const Tensor* const> operands) {
  const int n = int(shape.size());
  auto stride = [&](const Tensor& t, int d) -> int64_t {
    int lead = n - int(t.dim());
    return d < lead || t.sizes()[size_t(d - lead)] != shape[size_t(d)] ? 0 : t.strides()[size_t(d - lead)];
  };
  auto order_of = [&](int a, int b) {  // -1: a lies inside b, 1: b inside a, 0: no operand tells
    for (const Tensor* t : operands) {
      int64_t x = stride(*t, a), y = stride(*t, b);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (shape[size_t(a)] > shape[size_t(b)]) return 1;
    }
    return 0;
  };
  SmallVector<int, 8> order;
  for (int d = n - 1; d >= 0; --d) {
    order.push_back(d);
    // A dimension that no operand orders against this one is passed over: one further in may lie outside of it.
    size_t place = order.size() - 1;
    for (size_t at = place; at-- > 0;) {
      int told = order_of(order[at], order[place]);
      if (told < 0) break;
      if (told == 0) continue;
      std::swap(order[at], order[place]);
      place = at;
    }
  }
  Dims strides(shape.size());
  int64_t step = 1;
  for (int d : order) {
    strides[size_t(d)] = step;
    step *= std::max<int64_t>(shape[size_t(d)], 1);
  }
  return strides;
}

bool self_overlaps(const Tensor& t) {
  // Sorted by stride, each dimension must step over all that lies inside it. A tensor that fails this may still be free
  // of overlap (strides 2 and 3), which is decided by counting where it is small, and taken as overlap where it is not.
  SmallVector<int, 8> order;
  for (int d = 0; d < int(t.dim()); ++d) {
    if (t.sizes()[size_t(d)] == 0) return false;
    if (t.sizes()[size_t(d)] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) { return t.strides()[size_t(a)] < t.strides()[size_t(b)]; });
  int64_t reach = 0;
  bool nested = true;
  for (int d : order) {
    if (t.strides()[size_t(d)] == 0) return true;
    if (t.strides()[size_t(d)] <= reach) nested = false;
    reach += t.strides()[size_t(d)] * (t.sizes()[size_t(d)] - 1);
  }
  if (nested) return false;
  constexpr int64_t kCounted = 1 << 16;
  if (t.numel() > kCounted) return true;
  std::vector<int64_t> seen{0};
  for (int d : order) {
    size_t before = seen.size();
    for (int64_t i = 1; i < t.sizes()[size_t(d)]; ++i) {
      for (size_t k = 0; k < before; ++k) seen.push_back(seen[k] + i * t.strides()[size_t(d)]);
    }
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) != seen.end();
}

Overlap overlap(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = *a.impl(), &y = *b.impl();
  if (x.numel() == 0 || y.numel() == 0) return Overlap::none;
  if (x.storage() != y.storage()) {
    if (x.storage()->resizable() || y.storage()->resizable()) return Overlap::none;
    // two wraps of one outside block share addresses without sharing a Storage
  }
  auto last = [](const TensorImpl& t) {
    int64_t n = 0;
    for (int64_t d = 0; d < t.ndim(); ++d) n += (t.sizes()[size_t(d)] - 1) * t.strides()[size_t(d)];
    return t.data() + (n + 1) * itemsize(t.dtype());
  };
  if (last(x) <= y.data() || last(y) <= x.data()) return Overlap::none;
  if (x.data() == y.data() && x.dtype() == y.dtype() && std::ranges::equal(x.sizes(), y.sizes()) &&
      std::ranges::equal(x.strides(), y.strides())) {
    return Overlap::same;
  }
  return Overlap::partial;
}

void resize_tensor(const Tensor& t, IntSpan sizes) {
  TensorImpl& impl = *t.impl();
  int64_t bytes = checked_mul(numel_of(sizes, "resize_"), itemsize(t.dtype()), "resize_");
  int64_t need = checked_add(bytes, checked_mul(impl.offset(), itemsize(t.dtype()), "resize_"), "resize_");
  if (uint64_t(need) > impl.storage()->nbytes()) impl.storage()->resize(size_t(need));
  impl.set_geometry(sizes, contiguous_strides(sizes), impl.offset(), "resize_");
}

}  // namespace vesta
