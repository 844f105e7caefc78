// Geometry: every function computes sizes, strides and an offset, and ends in alias(), which checks the extent.
#include <vesta/core/ops/view.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/view.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <vesta/core/autograd_port.h>
#include <vesta/core/ops/examples.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/sparse.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_VIEW)

SliceBounds slice_bounds(int64_t size, MaybeInt start, MaybeInt end, int64_t step, const char* op) {
  VESTA_CHECK(step > 0, value, op, ": expected a step greater than zero, got ", step, " (step).");
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  SliceBounds b{clamp(start.value_or(0)), clamp(end.value_or(size)), 0};
  b.end = std::max(b.end, b.start);
  b.length = (b.end - b.start) / step + ((b.end - b.start) % step != 0);
  return b;
}

namespace view_ops {
namespace {

void erase_at(Dims& d, int64_t at) { d.erase(size_t(at)); }

Tensor view(const Tensor& t, IntList size) {
  Dims sizes = infer_size(size, t.numel(), "view");
  if (t.is_contiguous()) return alias(t, sizes, contiguous_strides(sizes), t.storage_offset(), "view");
  std::optional<Dims> strides = view_strides(t.sizes(), t.strides(), sizes);
  VESTA_CHECK(strides, runtime,
              "view: view size is not compatible with input tensor's size and stride (at least one dimension spans "
              "across two contiguous subspaces). Use .reshape(...) instead.");
  return alias(t, sizes, *strides, t.storage_offset(), "view");
}

Tensor permute(const Tensor& t, IntList dims) {
  VESTA_CHECK(int64_t(dims.size()) == t.dim(), runtime,
              "permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
              "dimensions i.e. input.dim() = ",
              t.dim(), " is not equal to len(dims) = ", dims.size(), ".");
  Dims sizes(dims.size()), strides(dims.size());
  uint64_t seen = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], t.dim(), "permute");
    VESTA_CHECK(!(seen >> d & 1), runtime, "permute: duplicate dims are not allowed, got ", IntSpan(dims), ".");
    seen |= uint64_t(1) << d;
    sizes[i] = t.sizes()[size_t(d)], strides[i] = t.strides()[size_t(d)];
  }
  return alias(t, sizes, strides, t.storage_offset(), "permute");
}

Tensor transpose(const Tensor& t, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, t.dim(), "transpose"), b = wrap_dim(dim1, t.dim(), "transpose");
  Dims sizes(t.sizes()), strides(t.strides());
  if (a != b) {
    std::swap(sizes[size_t(a)], sizes[size_t(b)]);
    std::swap(strides[size_t(a)], strides[size_t(b)]);
  }
  return alias(t, sizes, strides, t.storage_offset(), "transpose");
}

Tensor expand(const Tensor& t, IntList size, bool) {
  const int64_t n = int64_t(size.size()), lead = n - t.dim();
  VESTA_CHECK(lead >= 0, runtime, "expand: the number of sizes provided (", n,
              ") must be greater or equal to the number of dimensions in the tensor (", t.dim(), "), whose sizes are ",
              t.sizes(), ".");
  Dims sizes(size.size()), strides(size.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t wanted = size[size_t(i)];
    if (i < lead) {
      VESTA_CHECK(wanted >= 0, runtime, "expand: The expanded size of the tensor (", wanted,
                  ") isn't allowed in a leading, non-existing dimension ", i, ".");
      sizes[size_t(i)] = wanted;  // its stride stays 0
      continue;
    }
    int64_t have = t.sizes()[size_t(i - lead)];
    if (wanted == -1) wanted = have;
    VESTA_CHECK(wanted == have || have == 1, runtime, "expand: The expanded size of the tensor (", wanted,
                ") must match the existing size (", have, ") at non-singleton dimension ", i,
                ".  Target sizes: ", IntSpan(size), ".  Tensor sizes: ", t.sizes(), ".");
    sizes[size_t(i)] = wanted;
    strides[size_t(i)] = wanted == have ? t.strides()[size_t(i - lead)] : 0;
  }
  return alias(t, sizes, strides, t.storage_offset(), "expand");
}

Tensor squeeze(const Tensor& t, const MaybeDims& dim) {
  uint64_t mask = dim ? dim_mask(*dim, t.dim(), "squeeze", false) : ~uint64_t(0);
  Dims sizes, strides;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.sizes()[size_t(d)] == 1 && (mask >> d & 1)) continue;
    sizes.push_back(t.sizes()[size_t(d)]);
    strides.push_back(t.strides()[size_t(d)]);
  }
  return alias(t, sizes, strides, t.storage_offset(), "squeeze");
}

Tensor unsqueeze(const Tensor& t, int64_t dim) {
  int64_t d = wrap_dim(dim, t.dim() + 1, "unsqueeze");
  Dims sizes(t.sizes()), strides(t.strides());
  int64_t stride = d < t.dim() ? moved(0, sizes[size_t(d)], strides[size_t(d)]) : 1;
  sizes.insert(size_t(d), 1);
  strides.insert(size_t(d), stride);
  return alias(t, sizes, strides, t.storage_offset(), "unsqueeze");
}

Tensor select(const Tensor& t, int64_t dim, int64_t index) {
  VESTA_CHECK(t.dim() > 0, index, "select: cannot be applied to a 0-dim tensor.");
  int64_t d = wrap_dim(dim, t.dim(), "select"), n = t.sizes()[size_t(d)];
  VESTA_CHECK(index >= -n && index < n, index, "index ", index, " is out of bounds for dimension ", d, " with size ",
              n);
  Dims sizes(t.sizes()), strides(t.strides());
  int64_t offset = moved(t.storage_offset(), index < 0 ? index + n : index, strides[size_t(d)]);
  erase_at(sizes, d);
  erase_at(strides, d);
  return alias(t, sizes, strides, offset, "select");
}

Tensor slice(const Tensor& t, int64_t dim, MaybeInt start, MaybeInt end, int64_t step) {
  VESTA_CHECK(t.dim() > 0, index, "slice: cannot be applied to a 0-dim tensor.");
  int64_t d = wrap_dim(dim, t.dim(), "slice");
  SliceBounds b = slice_bounds(t.sizes()[size_t(d)], start, end, step, "slice");
  Dims sizes(t.sizes()), strides(t.strides());
  int64_t offset = moved(t.storage_offset(), b.start, strides[size_t(d)]);
  sizes[size_t(d)] = b.length;
  // With less than two elements the stride says nothing; a step near 2^63 must not overflow.
  if (b.length > 1) strides[size_t(d)] = checked_mul(strides[size_t(d)], step, "slice");
  return alias(t, sizes, strides, offset, "slice");
}

Tensor diagonal(const Tensor& t, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t a = wrap_dim(dim1, t.dim(), "diagonal"), b = wrap_dim(dim2, t.dim(), "diagonal");
  VESTA_CHECK(a != b, runtime, "diagonal: diagonal dimensions cannot be identical ", dim1, ", ", dim2, ".");
  int64_t rows = t.sizes()[size_t(a)], columns = t.sizes()[size_t(b)];
  // an offset beyond the matrix gives an empty diagonal; clamped first, so that nothing overflows
  offset = std::clamp(offset, -rows, columns);
  int64_t length =
      std::max<int64_t>(offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns), 0);
  int64_t start = t.storage_offset();
  if (length > 0)
    start = offset >= 0 ? moved(start, offset, t.strides()[size_t(b)]) : moved(start, -offset, t.strides()[size_t(a)]);
  Dims sizes(t.sizes()), strides(t.strides());
  int64_t stride = moved(strides[size_t(a)], 1, strides[size_t(b)]);
  for (int64_t d : {std::max(a, b), std::min(a, b)}) {
    erase_at(sizes, d);
    erase_at(strides, d);
  }
  sizes.push_back(length);
  strides.push_back(stride);
  return alias(t, sizes, strides, start, "diagonal");
}

Tensor as_strided(const Tensor& t, IntList size, IntList stride, MaybeInt storage_offset) {
  VESTA_CHECK(size.size() == stride.size(), runtime, "as_strided: mismatch in length of strides and shape, got ",
              IntSpan(stride), " and ", IntSpan(size), ".");
  for (int64_t s : stride) {
    VESTA_CHECK(s >= 0, runtime,
                "as_strided: Negative strides are not supported at the moment, got strides: ", IntSpan(stride), ".");
  }
  return alias(t, size, stride, offset_in_memory(t, size, stride, storage_offset, "as_strided"), "as_strided");
}

/// Reads the same bytes as elements of another dtype. Elements of another size change the last dimension.
Tensor view_dtype(const Tensor& t, DType dtype) {
  const int64_t from = itemsize(t.dtype()), to = itemsize(dtype);
  Dims sizes(t.sizes()), strides(t.strides());
  int64_t offset = t.storage_offset();
  if (from != to) {
    VESTA_CHECK(t.dim() > 0, runtime, "view: self.dim() cannot be 0 to view ", t.dtype(), " as ", dtype,
                " (different element sizes).");
    VESTA_CHECK(t.strides().back() == 1, runtime, "view: self.stride(-1) must be 1 to view ", t.dtype(), " as ", dtype,
                " (different element sizes), but got ", t.strides().back(), ".");
    const int64_t many = std::max(from, to) / std::min(from, to);
    const auto scaled = [&](int64_t n, const char* what) {
      if (from > to) return checked_mul(n, many, "view");
      VESTA_CHECK(n % many == 0, runtime, "view: ", what, " must be divisible by ", many, " to view ", t.dtype(),
                  " as ", dtype, " (different element sizes), but got ", n, ".");
      return n / many;
    };
    offset = scaled(offset, "self.storage_offset()");
    sizes.back() = scaled(sizes.back(), "self.size(-1)");
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = scaled(strides[d], "every stride but the last");
  }
  return alias(t, sizes, strides, offset, dtype, "view");
}

Tensor view_as_real(const Tensor& t) {
  VESTA_CHECK(t.is_complex(), type, "view_as_real: is only supported for complex tensors, got ", t.dtype(), ".");
  Dims sizes(t.sizes()), strides(t.strides());
  for (int64_t& stride : strides) stride = checked_mul(stride, 2, "view_as_real");
  sizes.push_back(2);
  strides.push_back(1);
  return alias(t, sizes, strides, 2 * t.storage_offset(),
               t.dtype() == DType::complex64 ? DType::float32 : DType::float64, "view_as_real");
}

Tensor view_as_complex(const Tensor& t) {
  VESTA_CHECK(t.dtype() == DType::float32 || t.dtype() == DType::float64, runtime,
              "view_as_complex: is only supported for tensors of float32 and float64, got ", t.dtype(), ".");
  VESTA_CHECK(t.dim() > 0 && t.sizes().back() == 2, runtime,
              "view_as_complex: Tensor must have a last dimension of size 2, got shape ", t.sizes(), ".");
  VESTA_CHECK(t.strides().back() == 1, runtime,
              "view_as_complex: Tensor must have a last dimension with stride 1, got ", t.strides().back(), ".");
  VESTA_CHECK(t.storage_offset() % 2 == 0, runtime,
              "view_as_complex: Tensor must have a storage_offset divisible by 2, got ", t.storage_offset(), ".");
  if (t.device().type() == DeviceType::cuda && t.numel() != 0) {  // imported memory may begin anywhere
    const int64_t whole = 2 * t.element_size();
    VESTA_CHECK(reinterpret_cast<uintptr_t>(t.impl()->data()) % uintptr_t(whole) == 0, runtime,
                "view_as_complex: a CUDA device reads complex numbers at multiples of ", whole,
                " bytes, and this memory begins at none: call it on a clone().");
  }
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.pop_back();
  strides.pop_back();
  for (size_t d = 0; d < strides.size(); ++d) {
    VESTA_CHECK(strides[d] % 2 == 0, runtime,
                "view_as_complex: Tensor must have a stride divisible by 2 for all but last dimension, got ",
                t.strides(), ".");
    strides[d] /= 2;
  }
  return alias(t, sizes, strides, t.storage_offset() / 2,
               t.dtype() == DType::float32 ? DType::complex64 : DType::complex128, "view_as_complex");
}

/// Gives a tensor the geometry of a view of it, and the view's place in the graph.
Tensor become(const Tensor& t, const Tensor& view, const char* op) {
  autograd_port.become_view(t, view, op);
  return t;
}
}  // namespace
}  // namespace view_ops

Tensor unsqueeze__composite(const Tensor& t, int64_t dim) {
  return view_ops::become(t, unsqueeze(t, dim), "unsqueeze_");
}
Tensor _squeeze__composite(const Tensor& t, const MaybeDims& dim) {
  return view_ops::become(t, _squeeze(t, dim), "squeeze_");
}
Tensor transpose__composite(const Tensor& t, int64_t dim0, int64_t dim1) {
  return view_ops::become(t, transpose(t, dim0, dim1), "transpose_");
}
Tensor t__composite(const Tensor& input) { return view_ops::become(input, t(input), "t_"); }
Tensor as_strided__composite(const Tensor& t, IntList size, IntList stride, MaybeInt storage_offset) {
  return view_ops::become(t, as_strided(t, size, stride, storage_offset), "as_strided_");
}
Tensor resize__composite(const Tensor& t, IntList size) {
  VESTA_CHECK(!t.requires_grad(), runtime, "resize_: cannot resize variables that require grad");
  check_dense(t, "resize_");
  for (int64_t n : size) VESTA_CHECK(n >= 0, runtime, "resize_: expected sizes >= 0, got ", IntSpan(size), ".");
  if (!std::ranges::equal(t.sizes(), IntSpan(size))) resize_tensor(t, size);
  t.impl()->bump("resize_");
  return t;
}
Tensor resize_as__composite(const Tensor& t, const Tensor& the_template) {
  return resize_(t, IntList(the_template.sizes()));
}

void register_view_ops() {
  ops::view.set_kernel(&view_ops::view);
  ops::permute.set_kernel(&view_ops::permute);
  ops::transpose.set_kernel(&view_ops::transpose);
  ops::expand.set_kernel(&view_ops::expand);
  ops::_squeeze.set_kernel(&view_ops::squeeze);
  ops::unsqueeze.set_kernel(&view_ops::unsqueeze);
  ops::select.set_kernel(&view_ops::select);
  ops::slice.set_kernel(&view_ops::slice);
  ops::diagonal.set_kernel(&view_ops::diagonal);
  ops::as_strided.set_kernel(&view_ops::as_strided);
  ops::view_dtype.set_kernel(&view_ops::view_dtype);
  ops::view_as_real.set_kernel(&view_ops::view_as_real);
  ops::view_as_complex.set_kernel(&view_ops::view_as_complex);
}

}  // namespace vesta
