// Subscripts: a chain of views for integers, slices, None and `...`, then one _index or index_put_ for the rest.
#include <vesta/core/index.h>

#include <algorithm>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

bool is_mask(const Tensor& t) { return t.dtype() == DType::bool_ || t.dtype() == DType::uint8; }

/// Counts the dimensions that subscripts use up and checks what can be told from the list alone.
int64_t used_dims(const Tensor& t, std::span<const Index> at) {
  VESTA_CHECK(
      t.dim() > 0 || at.size() != 1 || at[0].kind != Index::Kind::integer, index,
      "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
      "0-dim tensor to a number");
  int64_t used = 0, ellipses = 0;
  for (const Index& i : at) {
    switch (i.kind) {
      case Index::Kind::integer:
      case Index::Kind::slice: ++used; break;
      case Index::Kind::ellipsis: ++ellipses; break;
      case Index::Kind::tensor:
        check_defined(i.tensor, "index", "index");
        used += is_mask(i.tensor) ? i.tensor.dim() : 1;
        break;
      default: break;
    }
  }
  VESTA_CHECK(ellipses <= 1 || follows_torch(), index, "an index can only have a single ellipsis ('...')");
  VESTA_CHECK(used <= t.dim(), index, "too many indices for tensor of dimension ", t.dim());
  return used;
}

/// Applies the views one by one and collects the index tensors by dimension of the view.
class Subscripts {
 public:
  Subscripts(const Tensor& t, std::span<const Index> at) : view_(t), skipped_(t.dim() - used_dims(t, at)) {
    for (const Index& i : at) apply(i);
  }
  bool is_view() const { return indices_.empty(); }
  const Tensor& view() const { return view_; }
  TensorList indices() const { return indices_; }

 private:
  void apply(const Index& i) {
    switch (i.kind) {
      case Index::Kind::integer: return integer(i.integer);
      case Index::Kind::slice: {
        // a full slice changes nothing and is not worth a node of the graph
        bool full = !i.slice.start && !i.slice.stop && i.slice.step == 1;
        if (!full) view_ = slice(view_, dim_, i.slice.start, i.slice.stop, i.slice.step);
        ++dim_, ++source_;
        return;
      }
      case Index::Kind::ellipsis: dim_ += skipped_, source_ += skipped_; return;
      case Index::Kind::newaxis: view_ = unsqueeze(view_, dim_++); return;
      case Index::Kind::boolean: return boolean(i.integer != 0);
      case Index::Kind::tensor: return tensor(i.tensor);
    }
  }
  void integer(int64_t i) {
    int64_t n = view_.sizes()[size_t(dim_)];
    VESTA_CHECK(i >= -n && i < n, index, "index ", i, " is out of bounds for dimension ", source_, " with size ", n);
    view_ = select(view_, dim_, i);
    ++source_;
  }
  /// Treats True as an index of one 0 into a new dimension, False as an empty one.
  void boolean(bool on) {
    view_ = unsqueeze(view_, dim_);
    record(full({on ? 1 : 0}, 0, DType::int64, view_.device()));
    ++dim_;
  }
  void tensor(const Tensor& t) {
    if (t.dim() == 0 && is_integral(t.dtype()) && t.dtype() != DType::uint8) return integer(t.item().integer());
    if (t.dim() == 0 && is_mask(t)) return boolean(t.item<bool>());
    VESTA_CHECK(is_mask(t) || t.dtype() == DType::int64 || t.dtype() == DType::int32, index,
                "tensors used as indices must be long, int, byte or bool tensors, got ", t.dtype());
    record(t);
    int64_t dims = is_mask(t) ? t.dim() : 1;
    if (is_mask(t)) check_mask(t);
    dim_ += dims, source_ += dims;
  }
  void check_mask(const Tensor& t) const {
    for (int64_t d = 0; d < t.dim(); ++d) {
      VESTA_CHECK(t.sizes()[size_t(d)] == view_.sizes()[size_t(dim_ + d)], index, "The shape of the mask ", t.sizes(),
                  " at index ", d, " does not match the shape of the indexed tensor ", view_.sizes(), " at index ",
                  dim_ + d);
    }
  }
  void record(const Tensor& t) {
    // indices_ holds one entry per dimension, but one for all the dimensions of a mask
    while (covered_ < dim_) indices_.emplace_back(), ++covered_;
    indices_.push_back(t);
    covered_ += is_mask(t) ? t.dim() : 1;
  }

  Tensor view_;
  int64_t skipped_;  // dimensions that `...` stands for
  int64_t dim_ = 0;  // next dimension of view_
  int64_t source_ = 0;  // the same, of the tensor that was indexed: for messages
  int64_t covered_ = 0;
  TensorVector indices_;
};

/// Removes leading dimensions of size 1 down to `dims`: assignment ignores them, broadcasting brings back what is
/// needed.
Tensor without_leading_ones(const Tensor& value, int64_t dims) {
  Tensor v = value;
  while (v.dim() > dims && v.sizes()[0] == 1) v = select(v, 0, 0);
  return v;
}

/// Makes a number a tensor of t's dtype; raises where it does not fit.
Tensor as_value(const Tensor& t, const Tensor& value) {
  check_defined(value, "index_put_", "value");
  if (!value.impl()->wrapped_number) return value;
  Tensor v = empty_tensor({}, t.dtype(), t.device());
  fill_values(v, value.item(), "index_put_");
  return v;
}

/// Assigns a number to all elements. It must fit their dtype, unless a 16-bit float is one alone: PyTorch copies it.
void assign_number(const Tensor& view, Scalar number) {
  const bool copied = view.numel() == 1 && view.element_size() == 2;
  fill_(view, copied ? as_element(number, view.dtype()) : number);
}

/// Returns the mask that alone chooses what one value is assigned to, broadcasting with `view`; else undefined. Such an
/// assignment does not have to know how many elements there are, for which a device would make the host wait.
Tensor only_mask(const Tensor& view, TensorList indices, const Tensor& value) {
  size_t at = 0;
  while (!indices[at].defined()) ++at;
  const Tensor& mask = indices[at];
  if (at + 1 != indices.size() || mask.dtype() != DType::bool_ || mask.dim() == 0) return {};
  if (value.numel() != 1 || value.dim() > 1 || value.dtype() != view.dtype()) return {};
  Dims sizes(mask.sizes());
  sizes.resize(size_t(view.dim()) - at, 1);
  return mask.dim() == int64_t(sizes.size()) ? mask : reshape(mask, sizes);
}

}  // namespace

Tensor get_index(const Tensor& t, std::span<const Index> at) {
  check_defined(t, "index", "input");
  if (at.size() == 1 && t.dim() > 0) {  // x[3] and x[1:3]: no list of subscripts to build
    if (at[0].kind == Index::Kind::integer) return select(t, 0, at[0].integer);
    if (at[0].kind == Index::Kind::slice) return slice(t, 0, at[0].slice.start, at[0].slice.stop, at[0].slice.step);
  }
  Subscripts s(t, at);
  if (!s.is_view()) return _index(s.view(), s.indices());
  return s.view().is_same(t) ? expand(t, t.sizes()) : s.view();  // x[...] is a new tensor too
}

void set_index(const Tensor& t, std::span<const Index> at, const Tensor& value) {
  check_defined(t, "index_put_", "input");
  Subscripts s(t, at);
  if (s.is_view()) {
    check_defined(value, "index_put_", "value");
    if (value.impl()->wrapped_number && !value.is_complex()) assign_number(s.view(), value.item());
    else copy_(s.view(), without_leading_ones(as_value(t, value), s.view().dim()), false);
    return;
  }
  const Tensor v = without_leading_ones(as_value(t, value), 1);
  if (Tensor mask = only_mask(s.view(), s.indices(), v); mask.defined()) {
    ops::masked_fill(s.view(), mask, v.dim() == 0 ? v : select(v, 0, 0), Out{&s.view(), Out::inplace});
  } else {
    index_put_(s.view(), s.indices(), v, false);
  }
}

Tensor Tensor::index(std::initializer_list<Index> at) const {
  VESTA_CHECK(defined(), value, "index: expected a defined tensor, got an undefined one.");
  return get_index(*this, {at.begin(), at.size()});
}
Tensor Tensor::operator[](int64_t i) const {
  VESTA_CHECK(defined(), value, "index: expected a defined tensor, got an undefined one.");
  Index at(i);
  return get_index(*this, {&at, 1});
}
void Tensor::index_put_(std::initializer_list<Index> at, const Tensor& value) const {
  VESTA_CHECK(defined() && value.defined(), value, "index_put_: expected a defined tensor, got an undefined one.");
  set_index(*this, {at.begin(), at.size()}, value);
}

}  // namespace vesta
