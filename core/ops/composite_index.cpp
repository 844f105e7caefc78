// Reading and writing at positions, made of other ops: their gradients come from those.
#include <algorithm>

#include <vesta/core/autograd_port.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/examples.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

// ---- scatter ----

Tensor scatter_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_(clone(input, "contiguous_format"), dim, index, src);
}

namespace {

/// Makes the number of scatter's form with a value a tensor of index's shape.
Tensor source_of(const Tensor& input, const Tensor& index, const Tensor& src) {
  return src.impl()->wrapped_number ? full(index.sizes(), src.item(), input.dtype(), input.device()) : src;
}

}  // namespace

Tensor scatter_by__composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Text reduce) {
  VESTA_CHECK(reduce == "add" || reduce == "multiply", runtime,
              "scatter: reduce argument must be either add or multiply, got '", reduce, "'.");
  const Tensor source = source_of(input, index, src);
  if (reduce == "add") return scatter_add_(input, dim, index, source);
  return scatter_reduce_(input, dim, index, source, "prod", true);
}

Tensor scatter_by_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Text reduce) {
  return ops::scatter_by_(clone(input, "contiguous_format"), dim, index, src, reduce);
}

namespace {

void check_reduce(Text reduce, const char* op, bool sums) {
  VESTA_CHECK((sums && reduce == "sum") || reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
              runtime, op, ": reduce argument must be either ", sums ? "sum, " : "", "prod, mean, amax or amin, got '",
              reduce, "'.");
}

/// Raises where autograd forbids a write into t, before a view of it, which it would speak of, is written.
void check_inplace(const Tensor& t, const char* op) {
  if (layer_state.grad_enabled) autograd_port.check_inplace(t, op);
}

/// Returns t, or a copy where it shares elements with a tensor that is to be written.
Tensor apart_from(const Tensor& written, const Tensor& t) {
  return overlap(written, t) == Overlap::none ? t : clone(t);
}

/// Makes all checks of a scatter_reduce before anything is written.
void check_scatter_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Text reduce,
                          const char* op) {
  check_reduce(reduce, op, true);
  VESTA_CHECK(input.dtype() == src.dtype(), runtime, op, ": Expected self.dtype to be equal to src.dtype, got ",
              input.dtype(), " and ", src.dtype(), ".");
  if (reduce != "sum" && reduce != "mean") check_real(input, op);
  VESTA_CHECK(reduce != "mean" || input.dtype() != DType::bool_, type, op, ": expected numbers for a mean, got bool.");
  scatter_plan(input, dim, index, src, op);
}

}  // namespace

Tensor scatter_reduce__composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Text reduce,
                                 bool include_self) {
  check_scatter_reduce(input, dim, index, src, reduce, "scatter_reduce_");
  const Tensor at = apart_from(input, index), from = apart_from(input, src);
  const bool sums = reduce == "sum" || reduce == "mean";
  if (!sums && layer_state.grad_enabled && (input.requires_grad() || src.requires_grad())) {
    return copy_(input, _scatter_reduce(clone(input), dim, at, from, reduce, include_self));
  }
  if (!include_self) start_places(input, dim, at, from, reduce);
  if (!sums) {
    NoGrad off;  // nothing requires one
    return _scatter_combine_(input, dim, at, from, reduce);
  }
  scatter_add_(input, dim, at, from);
  if (reduce == "sum") return input;
  const DType counted = is_differentiable(input.dtype()) ? real_type(input.dtype()) : input.dtype();
  Tensor count;
  {
    NoGrad off;
    count = ones_like(input, counted);
    if (!include_self) scatter_(count, dim, at, wrapped(int64_t(0)));
    scatter_add_(count, dim, at, expand(full(IntSpan(), Scalar(1), counted, input.device()), src.sizes()));
    count = masked_fill(count, eq(count, 0), 1);  // of positions that nothing goes to; integers may wrap, as in PyTorch
  }
  if (is_differentiable(input.dtype())) ops::div(input, count, Out{&input, Out::inplace});
  else ops::floor_divide(input, count, Out{&input, Out::inplace});
  return input;
}

Tensor scatter_reduce_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, Text reduce,
                                bool include_self) {
  check_scatter_reduce(input, dim, index, src, reduce, "scatter_reduce");
  if (reduce == "sum" || reduce == "mean") {
    return scatter_reduce_(clone(input, "contiguous_format"), dim, index, src, reduce, include_self);
  }
  return _scatter_reduce(input, dim, index, src, reduce, include_self);
}

// ---- along one dimension ----

namespace {

/// Makes the list of indices that means "index along d, everything else whole".
TensorVector along(int64_t d, const Tensor& index) {
  TensorVector indices(size_t(d) + 1);
  indices[size_t(d)] = index;
  return indices;
}

/// Checks that source has one slice along d per index, of input's shape otherwise. `copies`: a number and a vector of
/// one element may stand for each other.
void check_slices(const Tensor& input, int64_t d, const Tensor& index, const Tensor& source, bool copies,
                  const char* op) {
  VESTA_CHECK(index.dim() <= 1, index, op, ": Index should have dimension 1 or 0, got ", index.dim(), ".");
  VESTA_CHECK(index.dtype() == DType::int64 || (!copies && index.dtype() == DType::int32), runtime, op,
              ": expected index to have dtype int64", copies ? "" : " or int32", ", got ", index.dtype(), ".");
  VESTA_CHECK(input.dtype() == source.dtype(), runtime, op, ": self and source expected to have the same dtype, but ",
              "got (self) ", input.dtype(), " and (source) ", source.dtype(), ".");
  VESTA_CHECK(!copies || source.dim() == 0 || source.dim() != input.dim() || source.size(d) == index.numel(), index, op,
              ": Number of indices (", index.numel(), ") should be equal to source.size(dim) (", source.size(d),
              "), as source has ", source.sizes(), ".");
  const bool one = copies && index.numel() == 1 && source.numel() == 1;
  bool fits = source.dim() == input.dim() || (one && input.dim() <= 1 && source.dim() <= 1);
  for (int64_t k = 0; k < source.dim() && k < input.dim() && fits; ++k) {
    fits = source.size(k) == (k == d ? index.numel() : input.size(k));
  }
  VESTA_CHECK(fits, runtime, op, ": expected source to have input's shape ", input.sizes(), ", with ", index.numel(),
              " slices along dimension ", d, ", got ", source.sizes(), ".");
}

}  // namespace

Tensor index_copy__composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = wrap_dim(dim, input.dim(), "index_copy_");
  check_slices(input, d, index, source, true, "index_copy_");
  const Tensor places = reshape(index, -1);
  check_inplace(input, "index_copy_");
  if (input.dim() == 0) index_put_(unsqueeze(input, 0), {places}, reshape(source, -1));
  else index_put_(input, along(d, places), source);
  return input;
}

Tensor index_copy_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = wrap_dim(dim, input.dim(), "index_copy");
  check_slices(input, d, index, source, true, "index_copy");
  return index_copy_(clone(input, "contiguous_format"), dim, index, source);
}

namespace {

/// Checks an index_reduce and returns its index as scatter_reduce has it, of source's shape.
Tensor places_to_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Text reduce,
                        const char* op) {
  check_reduce(reduce, op, false);
  const int64_t d = wrap_dim(dim, input.dim(), op);
  check_slices(input, d, index, source, false, op);
  Dims shape(size_t(source.dim()), 1);
  if (source.dim()) shape[size_t(d)] = index.numel();
  return expand(reshape(index.to(DType::int64), shape), source.sizes());
}

}  // namespace

Tensor index_reduce__composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Text reduce,
                               bool include_self) {
  const Tensor places = places_to_reduce(input, dim, index, source, reduce, "index_reduce_");
  return scatter_reduce_(input, dim, places, source, reduce, include_self);
}

Tensor index_reduce_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Text reduce,
                              bool include_self) {
  const Tensor places = places_to_reduce(input, dim, index, source, reduce, "index_reduce");
  return scatter_reduce(input, dim, places, source, reduce, include_self);
}

// ---- one line ----

Tensor take_composite(const Tensor& input, const Tensor& index) {
  VESTA_CHECK(index.dtype() == DType::int64, runtime, "take: Expected a long tensor for index, but got ", index.dtype(),
              ".");
  VESTA_CHECK(input.numel() > 0 || index.numel() == 0, index, "take: tried to take from an empty tensor.");
  return named_step(_index(reshape(input, -1), {index}), "TakeBackward0");
}

Tensor take_along_dim_composite(const Tensor& input, const Tensor& indices, MaybeInt dim) {
  VESTA_CHECK(indices.dtype() == DType::int64, runtime, "take_along_dim: dtype of indices should be int64 but got ",
              indices.dtype(), ".");
  const auto wrapped_indices = [](const Tensor& i, int64_t size) { return where(lt(i, 0), add(i, size), i); };
  if (!dim) return gather(reshape(input, -1), 0, wrapped_indices(reshape(indices, -1), input.numel()));
  VESTA_CHECK(input.dim() == indices.dim(), runtime,
              "take_along_dim: input and indices should have the same number of ", "dimensions, but got ", input.dim(),
              " dimensions for input, and ", indices.dim(), " dimensions for indices.");
  const int64_t d = wrap_dim(*dim, input.dim(), "take_along_dim");
  Dims a(input.sizes()), b(indices.sizes());
  if (input.dim()) a[size_t(d)] = b[size_t(d)] = 1;
  Dims shape = broadcast_shapes(a, b, "take_along_dim"), from(shape);
  if (input.dim()) shape[size_t(d)] = indices.size(d), from[size_t(d)] = input.size(d);
  return gather(expand(input, from), d, wrapped_indices(expand(indices, shape), input.dim() ? input.size(d) : 1));
}

namespace {

/// Returns the subscripts of positions in the line of all elements of input.
TensorVector subscripts_of(const Tensor& input, const Tensor& places) {
  NoGrad off;
  // Reads a line of one value, for its error: a position beyond the line, as the user has given it.
  _index(expand(zeros({1}, DType::bool_, input.device()), {input.numel()}), {places});
  Tensor rest = where(lt(places, 0), add(places, input.numel()), places);
  rest = where(lt(rest, 0), wrapped(input.numel()), rest);  // on a device whose error comes later, beyond dimension 0
  TensorVector subscripts(size_t(input.dim()));
  for (int64_t d = input.dim() - 1; d > 0; --d) {
    subscripts[size_t(d)] = remainder(rest, input.size(d));
    rest = floor_divide(rest, input.size(d));
  }
  subscripts[0] = rest;
  return subscripts;
}

void check_put(const Tensor& input, const Tensor& index, const Tensor& source, const char* op) {
  VESTA_CHECK(index.dtype() == DType::int64, runtime, op, ": Expected a long tensor for index, but got ", index.dtype(),
              ".");
  VESTA_CHECK(input.dtype() == source.dtype(), runtime, op, ": self and source expected to have the same dtype, but ",
              "got self.dtype = ", input.dtype(), " and source.dtype = ", source.dtype(), ".");
  VESTA_CHECK(index.numel() == source.numel(), runtime, op, ": Expected source and index to have the same number of ",
              "elements, but got source.numel() = ", source.numel(), ", index.numel() = ", index.numel(), ".");
  VESTA_CHECK(input.numel() > 0 || index.numel() == 0, index, op, ": tried to put elements into an empty tensor.");
}

}  // namespace

Tensor put__composite(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
  check_put(input, index, source, "put_");
  check_inplace(input, "put_");
  if (input.numel() == 0) return input;
  const Tensor places = reshape(apart_from(input, index), -1), values = reshape(source, -1);
  if (input.is_contiguous()) index_put_(view(input, -1), {places}, values, accumulate);
  else index_put_(input, subscripts_of(input, places), values, accumulate);
  return input;
}

Tensor put_composite(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
  check_put(input, index, source, "put");
  return put_(clone(input), index, source, accumulate);
}

// ---- masks ----

namespace {

void check_masked_scatter(const Tensor& input, const Tensor& mask, const Tensor& source, const char* op) {
  VESTA_CHECK(mask.dtype() == DType::bool_, runtime, op, ": only supports boolean masks, but got mask with dtype ",
              mask.dtype(), ".");
  VESTA_CHECK(input.dtype() == source.dtype(), runtime, op, ": expected self and source to have same dtypes but got ",
              input.dtype(), " and ", source.dtype(), ".");
}

/// Writes into input, of the shape that it and mask broadcast to.
Tensor scatter_by_mask(const Tensor& input, const Tensor& mask, const Tensor& source, const char* op) {
  const Tensor where_to = contiguous(expand(mask, input.sizes()));
  // Without values only the shape is known: one that follows from all operands, as the gradients' shapes do.
  if (!has_values(input)) return copy_(input, where(where_to, sum(source).to(source.dtype()), input));
  const int64_t count = sum(where_to).item<int64_t>();  // how much of source is taken: waits for a device
  VESTA_CHECK(count <= source.numel(), runtime, op, ": expected source to have at least as many elements ",
              "as the mask has true ones, ", count, ", got ", source.numel(), ".");
  const Tensor first = slice(reshape(source, -1), 0, 0, count, 1);
  if (input.dim() == 0) index_put_(unsqueeze(input, 0), {unsqueeze(where_to, 0)}, first);
  else index_put_(input, {where_to}, first);
  return input;
}

}  // namespace

Tensor masked_scatter__composite(const Tensor& input, const Tensor& mask, const Tensor& source) {
  constexpr const char* op = "masked_scatter_";
  check_masked_scatter(input, mask, source, op);
  check_inplace(input, op);
  const Dims shape = broadcast_shapes(input.sizes(), mask.sizes(), op);
  VESTA_CHECK(std::ranges::equal(input.sizes(), IntSpan(shape)), runtime, op, ": expected a mask that broadcasts to ",
              "self's shape ", input.sizes(), ", got ", mask.sizes(), ".");
  return scatter_by_mask(input, mask, source, op);
}

Tensor masked_scatter_composite(const Tensor& input, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(input, mask, source, "masked_scatter");
  const Dims shape = broadcast_shapes(input.sizes(), mask.sizes(), "masked_scatter");
  return scatter_by_mask(clone(expand(input, shape), "contiguous_format"), mask, source, "masked_scatter");
}

// ---- views ----

namespace {

/// Writes src into `part`, a view of r, and returns r.
Tensor with_part(const Tensor& r, const Tensor& part, const Tensor& src, const char* op) {
  VESTA_CHECK(std::ranges::equal(part.sizes(), src.sizes()), runtime, op, ": expected src to have a size equal to the ",
              "slice of self. src size = ", src.sizes(), ", slice size = ", part.sizes(), ".");
  copy_(part, src);
  return r;
}

/// Writes src into a view of a copy of input.
template <class View>
Tensor copy_with(const Tensor& input, const Tensor& src, const char* op, View view) {
  const Tensor r = clone(input);
  return with_part(r, view(r), src, op);
}

/// Copies input and all memory that it is a view of: the copy lies in its memory as input does. Where input shows an
/// element several times, only what it shows.
Tensor clone_with_memory(const Tensor& input) {
  if (self_overlaps(input)) return clone(input);
  const int64_t elements = int64_t(input.impl()->storage()->nbytes()) / itemsize(input.dtype());
  const Tensor all(TensorImpl::make(input.impl()->storage(), Dims{elements}, Dims{1}, 0, input.dtype(), "clone"));
  Tensor r = as_strided(clone(all), IntList(input.sizes()), IntList(input.strides()), input.storage_offset());
  if (input.requires_grad()) copy_(r, input);
  return r;
}

}  // namespace

Tensor select_scatter_composite(const Tensor& input, const Tensor& src, int64_t dim, int64_t index) {
  return copy_with(input, src, "select_scatter", [&](const Tensor& t) { return select(t, dim, index); });
}
Tensor as_strided_scatter_composite(const Tensor& input, const Tensor& src, IntList size, IntList stride,
                                    MaybeInt storage_offset) {
  const Tensor r = clone_with_memory(input);
  const int64_t offset = offset_in_memory(input, size, stride, storage_offset, "as_strided_scatter");
  return with_part(r, as_strided(r, size, stride, offset), src, "as_strided_scatter");
}
Tensor slice_scatter_composite(const Tensor& input, const Tensor& src, int64_t dim, MaybeInt start, MaybeInt end,
                               int64_t step) {
  return copy_with(input, src, "slice_scatter", [&](const Tensor& t) { return slice(t, dim, start, end, step); });
}
Tensor diagonal_scatter_composite(const Tensor& input, const Tensor& src, int64_t offset, int64_t dim1, int64_t dim2) {
  return copy_with(input, src, "diagonal_scatter", [&](const Tensor& t) { return diagonal(t, offset, dim1, dim2); });
}

// ---- classes ----

int64_t check_one_hot(const Tensor& input, int64_t num_classes) {
  VESTA_CHECK(input.dtype() == DType::int64, runtime, "one_hot: is only applicable to index tensor of type int64, got ",
              input.dtype(), ".");
  VESTA_CHECK(num_classes >= -1, runtime, "one_hot: expected num_classes of at least -1, got ", num_classes, ".");
  if (input.numel() == 0) {
    VESTA_CHECK(num_classes > 0, runtime, "one_hot: Can not infer total number of classes from empty tensor.");
    return num_classes;
  }
  if (input.device().type() != DeviceType::cpu && num_classes != -1) return num_classes;
  VESTA_CHECK(amin(input).item<int64_t>() >= 0, runtime, "one_hot: Class values must be non-negative.");
  const int64_t largest = amax(input).item<int64_t>();
  const int64_t count = num_classes == -1 ? checked_add(largest, 1, "one_hot") : num_classes;
  VESTA_CHECK(largest < count, runtime, "one_hot: Class values must be smaller than num_classes, got ", largest,
              " for ", count, ".");
  return count;
}

Tensor one_hot_composite(const Tensor& input, int64_t num_classes) {
  NoGrad off;
  Dims shape(input.sizes());
  shape.push_back(check_one_hot(input, num_classes));
  return scatter_(zeros(shape, DType::int64, input.device()), -1, unsqueeze(input, -1), wrapped(int64_t(1)));
}

}  // namespace vesta
