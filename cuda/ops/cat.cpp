// cat: tensors that are rows of dense runs (contiguous ones, and slices along outer dimensions) are copied many in one
// launch; others, by layout or dtype, one by one.
#include <vector>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/cuda/kernels/cat.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Describes `t` as rows of runs that are dense from dimension `dim` on; returns false if its strides do not allow it.
bool as_rows(const Tensor& t, int64_t dim, CatEntry& e) {
  const int64_t item = itemsize(t.dtype());
  int64_t run = 1;
  for (int64_t d = t.dim() - 1; d >= dim; --d) {
    const int64_t size = t.sizes()[size_t(d)];
    if (size != 1 && t.strides()[size_t(d)] != run) return false;
    run *= size;
  }
  e.rows = 1, e.row_stride = 0;
  for (int64_t d = dim - 1; d >= 0; --d) {
    const int64_t size = t.sizes()[size_t(d)], stride = t.strides()[size_t(d)];
    if (size == 1) continue;
    if (e.rows == 1) e.row_stride = stride;
    else if (stride != e.row_stride * e.rows) return false;
    e.rows *= size;
  }
  e.run = run * item, e.row_stride *= item;
  return e.rows * e.run < kCatBytes;
}

/// Concatenates to a row-major result.
Tensor cat_rows(TensorList tensors, const CatPlan& plan) {
  DeviceGuard guard(tensors[0].device().index());
  Tensor r = result_tensor(plan.sizes, plan.dtype, tensors[0].device());
  if (r.numel() == 0) return r;
  const int64_t item = itemsize(plan.dtype), step = r.strides()[size_t(plan.dim)];
  CatLaunch l;
  l.stream = stream_of(r), l.out = r.impl()->data();
  const int64_t row = plan.sizes[size_t(plan.dim)] * step;
  l.out_stride = r.numel() == row ? 0 : row * item;
  Dims sizes(plan.sizes);
  int64_t offset = 0;  // in elements of the result
  for (int32_t i : plan.used) {
    const Tensor& t = tensors[size_t(i)];
    const int64_t length = t.sizes()[size_t(plan.dim)];
    CatEntry& e = l.entries[l.count];
    if (t.dtype() == plan.dtype && as_rows(t, plan.dim, e)) {
      e.from = t.impl()->data(), e.at = offset * item;
      if (++l.count == kCatEntries) run_cat(l), l.count = 0;
    } else {
      sizes[size_t(plan.dim)] = length;
      copy_values(alias(r, sizes, r.strides(), offset, "cat"), t);
    }
    offset += length * step;
  }
  if (l.count) run_cat(l);
  return r;
}

Tensor cat_kernel(TensorList tensors, int64_t dim) {
  const CatPlan plan = cat_plan(tensors, dim);
  if (!plan.channels_last) return cat_rows(tensors, plan);
  std::vector<Tensor> pixels;  // the same in the order of the memory
  for (int32_t i : plan.used) pixels.push_back(channels_behind(tensors[size_t(i)]));
  const int64_t behind = plan.dim == 0 ? 0 : plan.dim == 1 ? int64_t(plan.sizes.size()) - 1 : plan.dim - 1;
  CatPlan rows = cat_plan(pixels, behind);
  rows.dtype = plan.dtype;
  return channels_second(cat_rows(pixels, rows));
}

}  // namespace

void register_cat() { ops::cat.set_kernel(DeviceType::cuda, cat_kernel); }

}  // namespace vesta::cuda
