#include <vesta/core/ops/index.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/docs/index.h>

#include <algorithm>
#include <cmath>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_INDEX)

namespace {

bool is_mask(const Tensor& t) { return t.dtype() == DType::bool_ || t.dtype() == DType::uint8; }

/// Appends index `t` for the dimensions from `dim` on; a mask becomes one index per dimension it covers.
void add_index(IndexPlan& plan, const Tensor& input, const Tensor& t, int64_t at, int64_t& dim, const char* op) {
  VESTA_CHECK(dim + (is_mask(t) ? t.dim() : 1) <= input.dim(), index, "too many indices for tensor of dimension ",
              input.dim());
  if (!is_mask(t)) {
    VESTA_CHECK(t.dtype() == DType::int64 || t.dtype() == DType::int32, index, op,
                ": tensors used as indices must be long, int, byte or bool tensors, got ", t.dtype(), ".");
    plan.dims.push_back(dim++);
    plan.indices.push_back(t);
    return;
  }
  for (int64_t d = 0; d < t.dim(); ++d) {
    VESTA_CHECK(t.sizes()[size_t(d)] == input.sizes()[size_t(dim + d)], index, "The shape of the mask ", t.sizes(),
                " at index ", at + d, " does not match the shape of the indexed tensor ", input.sizes(), " at index ",
                dim + d);
  }
  Tensor places = ops::nonzero.kernel(t);
  for (int64_t d = 0; d < t.dim(); ++d) {
    plan.dims.push_back(dim++);
    plan.indices.push_back(ops::select.kernel(places, 1, d));
  }
}

/// Makes every index int64, contiguous and of one shape.
void broadcast_indices(IndexPlan& plan, const char* op) {
  for (const Tensor& t : plan.indices) {
    Dims& s = plan.index_sizes;
    bool fits = true;
    int64_t lead = std::max<int64_t>(int64_t(s.size()), t.dim());
    for (int64_t d = 1; d <= std::min<int64_t>(int64_t(s.size()), t.dim()); ++d) {
      int64_t a = s[s.size() - size_t(d)], b = t.sizes()[size_t(t.dim() - d)];
      fits = fits && (a == b || a == 1 || b == 1);
    }
    if (!fits) {
      std::string shapes;
      for (const Tensor& u : plan.indices) shapes += (shapes.empty() ? "" : ", ") + text(u.sizes());
      fail(Cause::index, "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
    if (lead > 0) s = broadcast_shapes(s, t.sizes(), op);
  }
  for (Tensor& t : plan.indices) {
    if (t.dtype() == DType::int64 && t.is_contiguous() && std::ranges::equal(t.sizes(), IntSpan(plan.index_sizes)))
      continue;
    Tensor same = empty_tensor(plan.index_sizes, DType::int64, t.device());
    copy_values(same, t);
    t = same;
  }
}

}  // namespace

IndexPlan index_plan(const Tensor& input, TensorList indices, const char* op) {
  IndexPlan plan;
  int64_t dim = 0, at = 0;
  for (const Tensor& t : indices) {
    if (t.defined()) {
      add_index(plan, input, t, at, dim, op);
    } else {
      VESTA_CHECK(dim < input.dim(), index, "too many indices for tensor of dimension ", input.dim());
      ++dim;
    }
    ++at;
  }
  VESTA_CHECK(!plan.indices.empty(), index, op, ": expected at least one index, got none.");
  broadcast_indices(plan, op);
  int64_t first = plan.dims[0], last = plan.dims.back();
  bool adjacent = last - first + 1 == int64_t(plan.dims.size());
  plan.place = adjacent ? first : 0;
  size_t next = 0;
  Dims rest;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (next < plan.dims.size() && plan.dims[next] == d) ++next;
    else rest.push_back(input.sizes()[size_t(d)]);
  }
  for (size_t d = 0; d <= rest.size(); ++d) {
    if (int64_t(d) == plan.place) {
      for (int64_t n : plan.index_sizes) plan.result_sizes.push_back(n);
    }
    if (d < rest.size()) plan.result_sizes.push_back(rest[d]);
  }
  return plan;
}

Tensor index_as_int64(const Tensor& index, const char* op, const char* argument) {
  VESTA_CHECK(index.dtype() == DType::int64 || index.dtype() == DType::int32, type, op,
              ": expected dtype int64 or int32, got ", index.dtype(), " (", argument, ").");
  if (index.dtype() == DType::int64 && index.is_contiguous()) return index;
  Tensor r = empty_tensor(index.sizes(), DType::int64, index.device());
  copy_values(r, index);
  return r;
}

int64_t check_index_vector(const Tensor& input, int64_t dim, const Tensor& index, const char* op) {
  check_defined(index, op, "index");  // the sparse layer comes here before the op has checked its arguments
  int64_t d = wrap_dim(dim, input.dim(), op);
  VESTA_CHECK(index.dim() <= 1, index, op, ": Index is supposed to be a vector, got one of ", index.dim(),
              " dimensions.");
  VESTA_CHECK(input.dim() > 0 || index.numel() == 1, index, op, ": Index to scalar can have only 1 value, got ",
              index.numel(), ".");
  return d;
}

void check_index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, double& alpha) {
  VESTA_CHECK(source.dtype() == self.dtype(), runtime, "index_add_: self (", self.dtype(), ") and source (",
              source.dtype(), ") must have the same scalar type.");
  bool fits = source.dim() == self.dim();
  for (int64_t d = 0; d < self.dim() && fits; ++d) {
    fits = source.sizes()[size_t(d)] == (d == dim ? index.numel() : self.sizes()[size_t(d)]);
  }
  VESTA_CHECK(fits, runtime, "index_add_: source of shape ", source.sizes(), " does not match self of shape ",
              self.sizes(), " with ", index.numel(), " indices at dimension ", dim, ".");
  if (is_differentiable(self.dtype())) return check_range(alpha, self.dtype(), "index_add_");
  alpha = std::trunc(alpha);
  check_factor(self.dtype(), alpha, "index_add_", "alpha");
}

namespace {

/// Makes index_fill_'s value an element like self's; a number must fit.
Tensor fill_element(const Tensor& self, const Tensor& value) {
  check_defined(value, "index_fill_", "value");
  VESTA_CHECK(value.dim() == 0, runtime, "index_fill_: expected a 0-dimensional value tensor, got one with ",
              value.dim(), " dimension(s) (value).");
  VESTA_CHECK(is_complex(self.dtype()) || !is_complex(value.dtype()), runtime,
              "index_fill_: expected a real value for a tensor of dtype ", self.dtype(), ", got ", value.dtype(),
              " (value).");
  if (!value.impl()->wrapped_number) {
    check_held(value, self.dtype(), "index_fill_");
    return ops::_to_copy.kernel(value, self.dtype(), self.device(), false);
  }
  Tensor r = empty_tensor({}, self.dtype(), self.device());
  fill_values(r, value.item(), "index_fill_");
  return r;
}

}  // namespace

FillPlan fill_plan(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  check_defined(index, "index_fill_", "index");
  const int64_t d = wrap_dim(dim, self.dim(), "index_fill_");
  VESTA_CHECK(index.device() == self.device(), device, "index_fill_: expected all tensors on one device, got ",
              self.device(), " (self) and ", index.device(), " (index). Move one with .to().");
  VESTA_CHECK(index.dim() <= 1, index, "index_fill_: expected a vector or a number, got ", index.dim(),
              " dimensions (index).");
  VESTA_CHECK(index.dtype() == DType::int64, index, "index_fill_: Expected dtype int64 for index, got ", index.dtype(),
              ".");
  Tensor places = index_as_int64(index, "index_fill_", "index");
  const Tensor element = fill_element(self, value);
  check_writable(self, "index_fill_");
  if (overlap(self, places) != Overlap::none) {
    places = empty_tensor(index.sizes(), DType::int64, index.device());
    copy_values(places, index);
  }
  FillPlan plan{self, {}, {}};
  if (self.dim() == 0) plan.self = alias(self, {{1}}, {{1}}, self.storage_offset(), "index_fill_");
  TensorVector indices(size_t(d) + 1);
  indices.back() = places;
  plan.places = index_plan(plan.self, indices, "index_fill_");
  plan.value = ops::expand.kernel(element, plan.places.result_sizes, false);
  return plan;
}

int64_t check_gather(const Tensor& input, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim(dim, input.dim(), "gather");
  if (index.numel() == 0) return d;
  VESTA_CHECK(std::max<int64_t>(index.dim(), 1) == std::max<int64_t>(input.dim(), 1), runtime,
              "gather: Index tensor must have the same number of dimensions as input tensor, got ", index.dim(),
              " and ", input.dim(), ".");
  for (int64_t k = 0; k < std::min(input.dim(), index.dim()); ++k) {
    VESTA_CHECK(k == d || index.sizes()[size_t(k)] <= input.sizes()[size_t(k)], runtime,
                "gather: Size does not match at dimension ", k, " expected index ", index.sizes(),
                " to be no larger than self ", input.sizes(), " apart from dimension ", d, ".");
  }
  return d;
}

namespace {

/// Checks the dtypes and shapes of a scatter; returns the dimension.
int64_t check_scatter_of(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const char* op) {
  int64_t d = wrap_dim(dim, self.dim(), op);
  VESTA_CHECK(src.dtype() == self.dtype(), runtime, op, ": Expected self.dtype to be equal to src.dtype, got ",
              self.dtype(), " and ", src.dtype(), ".");
  if (index.numel() == 0) return d;
  bool same = index.dim() == self.dim() && src.dim() == self.dim();
  VESTA_CHECK(same, runtime, op, ": Index tensor must have the same number of dimensions as self and src tensors, got ",
              index.dim(), ", ", self.dim(), " and ", src.dim(), ".");
  for (int64_t k = 0; k < self.dim(); ++k) {
    int64_t n = index.sizes()[size_t(k)];
    VESTA_CHECK((k == d || n <= self.sizes()[size_t(k)]) && n <= src.sizes()[size_t(k)], runtime, op,
                ": Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
                " apart from dimension ", d, " and to be no larger than src ", src.sizes(), ".");
  }
  return d;
}

}  // namespace

int64_t check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return check_scatter_of(self, dim, index, src, "scatter_add_");
}

ScatterPlan scatter_plan(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const char* op) {
  Tensor from = src;
  if (src.impl()->wrapped_number) {  // one element, repeated
    Tensor element = empty_tensor({}, self.dtype(), self.device());
    fill_values(element, src.item(), op);
    from = ops::expand.kernel(element, index.sizes(), false);
  }
  return {check_scatter_of(self, dim, index, from, op), from};
}

ScatterOp scatter_op(Text reduce) {
  VESTA_CHECK(reduce == "prod" || reduce == "amax" || reduce == "amin", runtime,
              "scatter_reduce: expected 'prod', 'amax' or 'amin', got '", reduce, "' (reduce).");
  return reduce == "prod" ? ScatterOp::product : reduce == "amax" ? ScatterOp::larger : ScatterOp::smaller;
}

void start_places(const Tensor& r, int64_t dim, const Tensor& index, const Tensor& src, Text reduce) {
  if (reduce == "sum" || reduce == "mean") scatter_(r, dim, index, wrapped(int64_t(0)));
  else if (reduce == "prod") scatter_(r, dim, index, wrapped(int64_t(1)));
  else scatter_(r, dim, index, src);
}

namespace {

/// scatter_reduce for one that is no sum: what was there takes no part unless include_self.
Tensor scatter_reduced(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Text reduce,
                       bool include_self) {
  Tensor r = empty_tensor(input.sizes(), input.dtype(), input.device());
  copy_values(r, input);
  if (!include_self) start_places(r, dim, index, src, reduce);
  return _scatter_combine_(r, dim, index, src, reduce);
}

}  // namespace

Tensor check_put_values(const Tensor& self, const IndexPlan& plan, const Tensor& values) {
  VESTA_CHECK(values.dtype() == self.dtype(), runtime,
              "index_put_: Index put requires the source and destination dtypes match, got ", self.dtype(),
              " for the destination and ", values.dtype(), " for the source.");
  int64_t lead = int64_t(plan.result_sizes.size()) - values.dim();
  bool fits = lead >= 0;
  for (int64_t d = 0; d < values.dim() && fits; ++d) {
    int64_t n = values.sizes()[size_t(d)];
    fits = n == 1 || n == plan.result_sizes[size_t(lead + d)];
  }
  VESTA_CHECK(fits, runtime, "shape mismatch: value tensor of shape ", values.sizes(),
              " cannot be broadcast to indexing result of shape ", IntSpan(plan.result_sizes));
  return ops::expand.kernel(values, plan.result_sizes, false);
}

bool steps_regularly(const Tensor& result, const IndexPlan& plan) {
  int64_t next = -1, first = plan.place;
  for (int64_t d = first + int64_t(plan.index_sizes.size()) - 1; d >= first; --d) {
    int64_t size = result.sizes()[size_t(d)], stride = result.strides()[size_t(d)];
    if (size == 1) continue;
    if (next >= 0 && stride != next) return false;
    next = stride * size;
  }
  return true;
}

CatPlan cat_plan(TensorList tensors, int64_t dim) {
  VESTA_CHECK(!tensors.empty(), value, "cat: expected a non-empty list of Tensors.");
  CatPlan plan;
  int32_t first = -1;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    VESTA_CHECK(t.dim() > 0, runtime, "cat: zero-dimensional tensor (at position ", i, ") cannot be concatenated.");
    if (first < 0 && !(t.dim() == 1 && t.numel() == 0)) first = int32_t(i);
  }
  plan.dtype = result_type(tensors);
  const Tensor& model = tensors[size_t(std::max(first, 0))];
  plan.dim = wrap_dim(dim, model.dim(), "cat");
  plan.sizes = Dims(model.sizes());
  plan.sizes[size_t(plan.dim)] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.dim() == 1 && t.numel() == 0) continue;
    VESTA_CHECK(t.dim() == model.dim(), runtime, "cat: Tensors must have same number of dimensions: got ", model.dim(),
                " and ", t.dim(), ".");
    for (int64_t d = 0; d < t.dim(); ++d) {
      VESTA_CHECK(d == plan.dim || t.sizes()[size_t(d)] == model.sizes()[size_t(d)], runtime,
                  "cat: Sizes of tensors must match except in dimension ", plan.dim, ". Expected size ",
                  model.sizes()[size_t(d)], " but got size ", t.sizes()[size_t(d)], " for tensor number ", i,
                  " in the list.");
    }
    plan.sizes[size_t(plan.dim)] = checked_add(plan.sizes[size_t(plan.dim)], t.sizes()[size_t(plan.dim)], "cat");
    if (t.numel()) plan.used.push_back(int32_t(i));
  }
  // Channels last where all of them are; an empty one-dimensional tensor has no say.
  plan.channels_last = !plan.used.empty() && std::ranges::all_of(plan.used, [&](int32_t i) {
    return suggests_channels_last(tensors[size_t(i)]);
  });
  return plan;
}

void copy_parts(const Tensor& result, const CatPlan& plan, TensorList tensors) {
  Dims sizes(plan.sizes);
  int64_t offset = 0, stride = result.strides()[size_t(plan.dim)];
  for (int32_t i : plan.used) {
    const Tensor& t = tensors[size_t(i)];
    sizes[size_t(plan.dim)] = t.sizes()[size_t(plan.dim)];
    copy_values(alias(result, sizes, result.strides(), offset, "cat"), t);
    offset += sizes[size_t(plan.dim)] * stride;
  }
}

namespace {

Tensor cat_kernel(TensorList tensors, int64_t dim) {
  const CatPlan plan = cat_plan(tensors, dim);
  Tensor r = image_result(plan.sizes, plan.channels_last, plan.dtype, tensors[0].device());
  copy_parts(r, plan, tensors);
  return r;
}

Tensor flip_kernel(const Tensor& input, IntList dims) {
  const uint64_t mask = dim_mask(dims, input.dim(), "flip", false);
  Tensor r = input;
  for (int64_t d = 0; d < input.dim(); ++d) {
    const int64_t n = input.sizes()[size_t(d)];
    if (!(mask >> d & 1) || n < 2) continue;
    r = ops::index_select.kernel(r, d, ops::arange_start_step.kernel(n - 1, -1, -1, DType::int64, input.device()));
  }
  const bool lies_right = !input.impl()->dense() || std::ranges::equal(r.strides(), input.strides());
  if (!r.is_same(input) && lies_right) return r;
  Tensor laid = flip_result(input);
  copy_values(laid, r);
  return laid;
}

}  // namespace

Tensor flip_result(const Tensor& input) {
  if (!input.impl()->dense()) return empty_tensor(input.sizes(), input.dtype(), input.device());
  return empty_tensor_strided(input.sizes(), input.strides(), input.dtype(), input.device());
}

void register_index_ops() {
  ops::_scatter_reduce.set_kernel(&scatter_reduced);
  ops::cat.set_kernel(&cat_kernel);
  ops::flip.set_kernel(&flip_kernel);
}

}  // namespace vesta
