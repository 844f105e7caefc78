// Indexing: checks and shapes. Indices are not compared with the sizes that they index: they have no values. What
// depends on how many elements of a mask are true has no shape here.
#include <vesta/core/ops/index.h>

#include <algorithm>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/shape.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/promotion.h>

namespace vesta::meta {
namespace {

/// Raises unless the tensor that is indexed lies on the meta device and its indices there or on the CPU.
void check_places_of(const Tensor& self, TensorList indices, const char* op) {
  VESTA_CHECK(!has_values(self), device, op, ": expected indices and values with elements for a tensor on ",
              self.device(), ", got a meta tensor. Move all to one device with .to().");
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    const DeviceType d = indices[i].device().type();
    VESTA_CHECK(d == DeviceType::meta || d == DeviceType::cpu, device, op,
                ": expected indices on the CPU or on the indexed tensor's device meta, got ", indices[i].device(),
                " (index ", i, "). Move it with .to().");
  }
}

Tensor _index(const Tensor& input, TensorList indices) {
  check_places_of(input, indices, "index");
  const IndexPlan plan = index_plan(input, indices, "index");
  return result(plan.result_sizes, input.dtype());
}

Tensor written(const Tensor& self, const char* op) {
  check_writable(self, op);
  self.impl()->bump(op);
  return self;
}

bool is_mask(const Tensor& t) { return t.defined() && (t.dtype() == DType::bool_ || t.dtype() == DType::uint8); }

Tensor index_put_(const Tensor& self, TensorList indices, const Tensor& values, bool) {
  check_defined(values, "index_put_", "values");
  check_places_of(self, indices, "index_put_");
  VESTA_CHECK(!has_values(values) || (values.device().type() == DeviceType::cpu && values.dim() == 0), device,
              "index_put_: expected values on the meta device or a number, got a tensor on ", values.device(),
              ". Move it with .to().");
  // How many values a mask takes is not known; the tensor's shape stays the same.
  const bool masked = std::any_of(indices.begin(), indices.end(), is_mask);
  if (!masked) check_put_values(self, index_plan(self, indices, "index_put_"), values);
  return written(self, "index_put_");
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  const int64_t d = check_index_vector(input, dim, index, "index_select");
  index_as_int64(index, "index_select", "index");
  return result(with_size(input, d, index.numel()), input.dtype());
}

Tensor index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  const int64_t d = check_index_vector(self, dim, index, "index_add_");
  check_index_add(self, d, index, source, alpha);
  index_as_int64(index, "index_add_", "index");
  return written(self, "index_add_");
}

Tensor index_fill_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  fill_plan(self, dim, index, value);
  self.impl()->bump("index_fill_");
  return self;
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  check_embedding(weight, indices);
  Dims sizes(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  return result(sizes, weight.dtype());
}

/// Checks the dtype of positions; an empty tensor of them may have any.
void check_places(const Tensor& index, const char* op) {
  if (index.numel()) index_as_int64(index, op, "index");
}

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index, bool) {
  check_gather(input, dim, index);
  check_places(index, "gather");
  return result(index.sizes(), input.dtype());
}

Tensor scattered(const Tensor& self, const Tensor& index, const char* op) {
  check_places(index, op);
  check_writable(self, op);
  if (index.numel()) self.impl()->bump(op);
  return self;
}

Tensor scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter(self, dim, index, src);
  return scattered(self, index, "scatter_add_");
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_plan(self, dim, index, src, "scatter_");
  return scattered(self, index, "scatter_");
}

Tensor _scatter_combine_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, Text reduce) {
  scatter_plan(self, dim, index, src, "scatter_reduce");
  scatter_op(reduce);
  check_real(self, "scatter_reduce", "self");
  return scattered(self, index, "scatter_reduce");
}

Tensor nonzero(const Tensor&) {
  fail(Cause::not_implemented,
       "nonzero: the size of the result depends on values, and a meta tensor has none. Select with where() or "
       "masked_fill(), which keep the shape, or compute on a device with memory.");
}

Tensor flip(const Tensor& input, IntList dims) {
  dim_mask(dims, input.dim(), "flip", false);
  return flip_result(input);
}

}  // namespace

void register_index() {
  ops::flip.set_kernel(DeviceType::meta, flip);
  ops::_index.set_kernel(DeviceType::meta, _index);
  ops::index_put_.set_kernel(DeviceType::meta, index_put_);
  ops::index_select.set_kernel(DeviceType::meta, index_select);
  ops::index_add_.set_kernel(DeviceType::meta, index_add_);
  ops::index_fill_.set_kernel(DeviceType::meta, index_fill_);
  ops::embedding.set_kernel(DeviceType::meta, embedding);
  ops::gather.set_kernel(DeviceType::meta, gather);
  ops::scatter_add_.set_kernel(DeviceType::meta, scatter_add_);
  ops::scatter_.set_kernel(DeviceType::meta, scatter_);
  ops::_scatter_combine_.set_kernel(DeviceType::meta, _scatter_combine_);
  ops::nonzero.set_kernel(DeviceType::meta, nonzero);
}

}  // namespace vesta::meta
