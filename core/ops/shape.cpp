// Composites that rearrange: every function here calls other ops only, and so has their gradients on every device.
#include <vesta/core/ops/shape.h>

#include <algorithm>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/shape.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SHAPE)

// ---- repetition ----

Tensor repeat_composite(const Tensor& input, IntList repeats) {
  const int64_t lead = int64_t(repeats.size()) - input.dim();
  VESTA_CHECK(lead >= 0, runtime, "repeat: Number of dimensions of repeat dims can not be smaller than number of ",
              "dimensions of tensor, got ", IntSpan(repeats), " (repeats) for shape ", input.sizes(), ".");
  Dims apart, wide, joined;  // [1, n] becomes [r, n] becomes [r * n]
  for (size_t d = 0; d < repeats.size(); ++d) {
    const int64_t r = repeats[d], n = int64_t(d) < lead ? 1 : input.sizes()[d - size_t(lead)];
    VESTA_CHECK(r >= 0, runtime, "repeat: Trying to create tensor with negative dimension ", r, ": ", IntSpan(repeats),
                " (repeats).");
    apart.push_back(1), apart.push_back(n);
    wide.push_back(r), wide.push_back(n);
    joined.push_back(checked_mul(r, n, "repeat"));
  }
  return named_step(view(clone(expand(reshape(input, apart), wide), "contiguous_format"), joined), "RepeatBackward0");
}

Tensor tile_composite(const Tensor& input, IntList dims) {
  Dims repeats(std::max(dims.size(), size_t(input.dim())), 1);
  std::ranges::copy(dims, repeats.end() - int64_t(dims.size()));
  return repeat(input, repeats);
}

void check_repeats(const Tensor& repeats) {
  VESTA_CHECK(repeats.dim() == 1, runtime, "repeat_interleave: repeat_interleave only accepts a 1-d tensor as ",
              "repeats, got shape ", repeats.sizes(), ".");
  VESTA_CHECK(is_integral(repeats.dtype()), type, "repeat_interleave: expected repeats of an integer dtype, got ",
              repeats.dtype(), ".");
}

Tensor repeat_interleave_Tensor_composite(const Tensor& repeats, MaybeInt output_size) {
  check_repeats(repeats);
  NoGrad off;
  if (!has_values(repeats)) {
    VESTA_CHECK(output_size, runtime, "repeat_interleave: cannot repeat_interleave a meta tensor without output_size: ",
                "the size of the result depends on its values.");
    return empty({*output_size}, repeats.dtype() == DType::int32 ? DType::int32 : DType::int64, repeats.device());
  }
  const Tensor counts = repeats.to(DType::int64);
  VESTA_CHECK(counts.numel() == 0 || amin(counts).item<int64_t>() >= 0, runtime,
              "repeat_interleave: repeats can not be negative.");
  const int64_t total = sum(counts).item<int64_t>();
  VESTA_CHECK(!output_size || *output_size == total, runtime, "repeat_interleave: allocated size does not match ",
              "required size: the repeats add up to ", total, ", got ", output_size.value_or(0), " (output_size).");
  // A mark where each element's run begins; the running sum of the marks counts elements.
  const Tensor starts = sub(cumsum(counts, 0), counts);
  const Tensor marks = zeros({total + 1}, DType::int64, counts.device());
  index_add_(marks, 0, starts, ones_like(counts));
  return sub(cumsum(narrow(marks, 0, 0, total), 0), 1)
      .to(repeats.dtype() == DType::int32 ? DType::int32 : DType::int64);
}

Tensor repeat_interleave_self_Tensor_composite(const Tensor& input, const Tensor& repeats, MaybeInt dim,
                                               MaybeInt output_size) {
  const Tensor x = dim ? input : reshape(input, -1);
  const int64_t d = wrap_dim(dim.value_or(0), x.dim(), "repeat_interleave"), n = x.dim() ? x.size(d) : 1;
  const bool single = repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1);
  const Tensor each = single ? expand(reshape(repeats, 1), n) : repeats;
  VESTA_CHECK(each.dim() == 1 && each.numel() == n, runtime, "repeat_interleave: repeats must have the same size as ",
              "input along dim, but got repeats.size(0) = ", each.numel(), " and input.size(", d, ") = ", n, ".");
  return index_select(x, d, repeat_interleave(each, output_size));
}

Tensor repeat_interleave_self_int_composite(const Tensor& input, int64_t repeats, MaybeInt dim, MaybeInt output_size) {
  VESTA_CHECK(repeats >= 0, runtime, "repeat_interleave: Repeats must be non-negative, got ", repeats, ".");
  VESTA_CHECK(!dim || input.dim() > 0, index, "repeat_interleave: expected a tensor with dimensions, got a 0-d tensor ",
              "and dim ", dim.value_or(0), ".");
  const Tensor x = dim ? input : reshape(input, -1);
  const int64_t d = wrap_dim(dim.value_or(0), x.dim(), "repeat_interleave");
  const int64_t total = checked_mul(x.size(d), repeats, "repeat_interleave");
  VESTA_CHECK(!output_size || *output_size == total, runtime, "repeat_interleave: Invalid output_size, expected ",
              total, ", got ", output_size.value_or(0), " (output_size).");
  Dims wide(x.sizes()), joined(x.sizes());
  wide.insert(size_t(d + 1), repeats);
  joined[size_t(d)] = total;
  return view(clone(expand(unsqueeze(x, d + 1), wide), "contiguous_format"), joined);
}

// ---- order ----

Tensor roll_composite(const Tensor& input, IntList shifts, IntList dims) {
  VESTA_CHECK(shifts.size() > 0, runtime, "roll: `shifts` required.");
  if (dims.empty() && shifts.size() == 1) {
    return named_step(view_as(roll(reshape(input, -1), shifts, 0), input), "RollBackward0");
  }
  VESTA_CHECK(shifts.size() == dims.size(), runtime, "roll: shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims: ", dims.size(), ".");
  Tensor r = input;
  for (size_t i = 0; i < dims.size(); ++i) {
    VESTA_CHECK(input.dim() > 0, index, "roll: Dimension specified as ", dims[i], " but tensor has no dimensions.");
    const int64_t d = wrap_dim(dims[i], input.dim(), "roll"), n = input.sizes()[size_t(d)];
    const int64_t by = n ? ((shifts[i] % n) + n) % n : 0;
    if (by) r = cat({narrow(r, d, n - by, by), narrow(r, d, 0, n - by)}, d);
  }
  return named_step(r.is_same(input) ? clone(input) : r, "RollBackward0");
}

Tensor rot90_composite(const Tensor& input, int64_t k, IntList dims) {
  VESTA_CHECK(dims.size() == 2, runtime, "rot90: expected total rotation dims == 2, but got dims = ", dims.size(), ".");
  VESTA_CHECK(input.dim() >= 2, runtime, "rot90: expected total dims >= 2, but got total dims = ", input.dim(), ".");
  const int64_t a = wrap_dim(dims[0], input.dim(), "rot90"), b = wrap_dim(dims[1], input.dim(), "rot90");
  VESTA_CHECK(a != b, runtime, "rot90: expected rotation dims to be different, but got dim0 = ", dims[0],
              " and dim1 = ", dims[1], ".");
  switch (((k % 4) + 4) % 4) {
    case 1: return transpose(flip(input, b), a, b);
    case 2: return flip(input, {a, b});
    case 3: return transpose(flip(input, a), a, b);
    default: return clone(input);
  }
}

Tensor fliplr_composite(const Tensor& input) {
  VESTA_CHECK(input.dim() >= 2, runtime, "fliplr: Input must be >= 2-d, got ", input.dim(), " dimensions.");
  return flip(input, 1);
}
Tensor flipud_composite(const Tensor& input) {
  VESTA_CHECK(input.dim() >= 1, runtime, "flipud: Input must be >= 1-d, got ", input.dim(), " dimensions.");
  return flip(input, 0);
}

// ---- views ----

Tensor movedim_intlist_composite(const Tensor& input, IntList source, IntList destination) {
  VESTA_CHECK(source.size() == destination.size(), runtime, "movedim: Invalid source or destination dims: source (",
              IntSpan(source), " dims) should contain the same number of dims as destination (", IntSpan(destination),
              " dims).");
  const uint64_t from = dim_mask(source, input.dim(), "movedim", false);
  dim_mask(destination, input.dim(), "movedim", false);
  Dims order(size_t(input.dim()), -1);
  for (size_t i = 0; i < source.size(); ++i) {
    order[size_t(wrap_dim(destination[i], input.dim(), "movedim"))] = wrap_dim(source[i], input.dim(), "movedim");
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (from >> next & 1) ++next;
    d = next++;
  }
  return permute(input, order);
}

Tensor unflatten_composite(const Tensor& input, int64_t dim, IntList sizes) {
  const int64_t d = wrap_dim(dim, input.dim(), "unflatten");
  VESTA_CHECK(input.dim() > 0, index, "unflatten: expected a tensor with dimensions, got a 0-d tensor (input).");
  VESTA_CHECK(sizes.size() > 0, runtime, "unflatten: sizes must be non-empty.");
  const int64_t n = input.sizes()[size_t(d)];
  int64_t known = 1, unknown = 0;
  for (int64_t s : sizes) {
    VESTA_CHECK(s >= -1, runtime, "unflatten: expected sizes of at least 0, or one -1, got ", IntSpan(sizes), ".");
    if (s < 0) ++unknown;
    else known = checked_mul(known, s, "unflatten");
  }
  VESTA_CHECK(unknown <= 1 && (unknown ? known > 0 && n % known == 0 : known == n), runtime,
              "unflatten: Provided sizes ", IntSpan(sizes), " don't multiply up to the size of dim ", dim, " (", n,
              ") in the input tensor.");
  Dims shape;
  for (int64_t k = 0; k < input.dim(); ++k) {
    if (k != d) shape.push_back(input.sizes()[size_t(k)]);
    else
      for (int64_t s : sizes) shape.push_back(s < 0 ? n / known : s);
  }
  return view(input, shape);
}

Tensor unfold_composite(const Tensor& input, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, input.dim(), "unfold"), n = input.dim() ? input.sizes()[size_t(d)] : 1;
  VESTA_CHECK(size >= 0, runtime, "unfold: size is ", size, " but must be >= 0.");
  VESTA_CHECK(size <= n, runtime, "unfold: maximum size for tensor at dimension ", d, " is ", n, " but size is ", size,
              ".");
  VESTA_CHECK(step > 0, runtime, "unfold: step is ", step, " but must be > 0.");
  Dims sizes(input.sizes()), strides(input.strides());
  const int64_t stride = input.dim() ? strides[size_t(d)] : 1;
  if (input.dim()) sizes[size_t(d)] = (n - size) / step + 1, strides[size_t(d)] = stride * step;
  sizes.push_back(size), strides.push_back(stride);
  return named_step(as_strided(input, sizes, strides), "UnfoldBackward0");
}

Tensor adjoint_composite(const Tensor& input) {
  VESTA_CHECK(input.dim() != 1, runtime,
              "adjoint: only supported on matrices or batches of matrices, got a 1-D tensor.");
  const Tensor r = input.dim() ? transpose(input, -2, -1) : input;
  return r.is_complex() ? conj_physical(r) : r;
}

// ---- triangles and diagonals ----

namespace {

/// Returns for each position [rows, columns] whether column - row is above the diagonal.
Tensor above(int64_t rows, int64_t columns, int64_t diagonal, Device device) {
  const int64_t d = std::clamp(diagonal, -rows - 1, columns);  // a sum with it does not overflow
  // the shorter the numbers, the more of them are compared at once
  const bool few = std::max({rows - d, d + rows, columns}) < INT32_MAX;
  const DType number = few ? DType::int32 : DType::int64;
  const Tensor last = unsqueeze(arange(d, d + rows, 1, number, device), 1);
  return gt(arange(0, columns, 1, number, device), last);
}

void check_matrix(const Tensor& input, const char* op) {
  VESTA_CHECK(input.dim() >= 2, runtime, op, ": input tensor must have at least 2 dimensions, got ", input.dim(), ".");
}

/// Counts the positions [rows, columns] with column - row <= diagonal.
int64_t count_below(int64_t rows, int64_t columns, int64_t diagonal) {
  const int64_t d = std::clamp(diagonal, -rows - 1, columns);
  const int64_t first = std::clamp<int64_t>(-d, 0, rows);  // the first row that has one
  const int64_t whole = std::clamp<int64_t>(columns - d, first, rows);  // the first one that has nothing else
  return (whole - first) * (first + whole + 2 * d + 1) / 2 + (rows - whole) * columns;
}

/// Returns the positions that are below a diagonal, or those above it.
Tensor triangle_indices(int64_t rows, int64_t columns, int64_t diagonal, bool below, MaybeDType dtype, Device device) {
  const DType d = dtype.value_or(DType::int64);
  const Tensor outside = above(rows, columns, diagonal, device);
  if (!has_values(outside)) {
    const int64_t count = count_below(rows, columns, diagonal);
    return empty({2, below ? count : rows * columns - count}, d, device);
  }
  return contiguous(transpose(nonzero(below ? logical_not(outside) : outside), 0, 1)).to(d);
}

void check_triangle(int64_t row, int64_t col, const char* op) {
  VESTA_CHECK(row >= 0, runtime, op, ": row must be non-negative, got ", row, ".");
  VESTA_CHECK(col >= 0, runtime, op, ": col must be non-negative, got ", col, ".");
}

}  // namespace

Tensor tril_composite(const Tensor& input, int64_t diagonal) {
  check_matrix(input, "tril");
  return named_step(masked_fill(input, above(input.size(-2), input.size(-1), diagonal, input.device()), 0),
                    "TrilBackward0");
}

Tensor triu_composite(const Tensor& input, int64_t diagonal) {
  check_matrix(input, "triu");
  const Tensor kept = above(input.size(-2), input.size(-1), std::max(diagonal, INT64_MIN + 1) - 1, input.device());
  return named_step(masked_fill(input, logical_not(kept), 0), "TriuBackward0");
}

Tensor fill_diagonal__composite(const Tensor& input, Scalar fill_value, bool wrap) {
  constexpr const char* op = "fill_diagonal_";
  VESTA_CHECK(input.dim() >= 2, runtime, op, ": dimensions must larger than 1, got ", input.sizes(), ".");
  int64_t step = 0, n = input.size(0);
  for (int64_t d = 0; d < input.dim(); ++d) {
    VESTA_CHECK(input.dim() == 2 || input.size(d) == n, runtime, op, ": all dimensions of input must be of equal ",
                "length, got ", input.sizes(), ".");
    n = std::min(n, input.size(d));
    step += input.stride(d);
  }
  if (input.numel() == 0) return input;
  fill_(as_strided(input, {n}, {step}), fill_value);
  // Of a tall matrix the diagonal goes on, one row left out, below the square part.
  const int64_t height = input.size(0), width = input.size(1);
  if (wrap && input.dim() == 2 && height > width + 1) {
    fill_diagonal_(narrow(input, 0, width + 1, height - width - 1), fill_value, true);
  }
  return input;
}

Tensor diag_composite(const Tensor& input, int64_t diagonal) {
  VESTA_CHECK(input.dim() == 1 || input.dim() == 2, runtime, "diag: Supports 1D or 2D tensors. Got ", input.dim(),
              "D.");
  return input.dim() == 1 ? diag_embed(input, diagonal) : clone(vesta::diagonal(input, diagonal));
}

Tensor diag_embed_composite(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t ndim = input.dim() + 1;
  const int64_t a = wrap_dim(dim1, ndim, "diag_embed"), b = wrap_dim(dim2, ndim, "diag_embed");
  VESTA_CHECK(a != b, runtime, "diag_embed: diagonal dimensions cannot be identical ", dim1, ", ", dim2, ".");
  VESTA_CHECK(input.dim() > 0, index, "diag_embed: expected a tensor with dimensions, got a 0-d tensor (input).");
  const int64_t n =
      checked_add(input.size(-1), offset < 0 ? checked_mul(offset, -1, "diag_embed") : offset, "diag_embed");
  Dims sizes(input.sizes());
  sizes.pop_back();
  sizes.insert(size_t(std::min(a, b)), n);
  sizes.insert(size_t(std::max(a, b)), n);
  Tensor r = zeros(sizes, input.dtype(), input.device());
  copy_(diagonal(r, offset, a, b), input);
  return r;
}

Tensor diagflat_composite(const Tensor& input, int64_t offset) { return diag_embed(reshape(input, -1), offset); }

Tensor trace_composite(const Tensor& input) {
  VESTA_CHECK(input.dim() == 2, runtime, "trace: expected a matrix, but got tensor with dim ", input.dim(), ".");
  return named_step(sum(diagonal(input)), "TraceBackward0");
}

Tensor tril_indices_composite(int64_t row, int64_t col, int64_t offset, MaybeDType dtype, MaybeDevice device) {
  check_triangle(row, col, "tril_indices");
  return triangle_indices(row, col, offset, true, dtype, device.value_or(Device()));
}
Tensor triu_indices_composite(int64_t row, int64_t col, int64_t offset, MaybeDType dtype, MaybeDevice device) {
  check_triangle(row, col, "triu_indices");
  offset = std::max(offset, INT64_MIN + 1) - 1;
  return triangle_indices(row, col, offset, false, dtype, device.value_or(Device()));
}

// ---- splitting and stacking ----

TensorVector tensor_split_indices_composite(const Tensor& input, IntList indices, int64_t dim) {
  VESTA_CHECK(input.dim() > 0, runtime, "tensor_split: expected at least a 1-dimensional tensor, got a 0-d one.");
  const int64_t d = wrap_dim(dim, input.dim(), "tensor_split");
  TensorVector parts;
  int64_t begin = 0;
  for (int64_t end : indices) {
    parts.push_back(slice(input, d, begin, end, 1));
    begin = end;
  }
  parts.push_back(slice(input, d, begin, {}, 1));
  return parts;
}

TensorVector tensor_split_sections_composite(const Tensor& input, int64_t sections, int64_t dim) {
  VESTA_CHECK(input.dim() > 0, runtime, "tensor_split: expected at least a 1-dimensional tensor, got a 0-d one.");
  const int64_t d = wrap_dim(dim, input.dim(), "tensor_split"), n = input.sizes()[size_t(d)];
  constexpr int64_t kMost = 1 << 20;  // parts: a mistaken number would take all memory
  VESTA_CHECK(sections > 0 && sections <= std::max(n, kMost), runtime,
              "tensor_split: number of sections must be larger than 0, got ", sections,
              ", and at most the larger of the size ", n, " and ", kMost, ".");
  TensorVector parts;
  int64_t begin = 0;
  for (int64_t i = 0; i < sections; ++i) {
    const int64_t size = n / sections + (i < n % sections);
    parts.push_back(slice(input, d, begin, begin + size, 1));
    begin += size;
  }
  return parts;
}

TensorVector tensor_split_tensor_indices_or_sections_composite(const Tensor& input, const Tensor& where, int64_t dim) {
  VESTA_CHECK(where.dtype() == DType::int64 && where.dim() <= 1, runtime, "tensor_split: expected an int64 tensor of ",
              "0 or 1 dimensions, got ", where.dtype(), " of shape ", where.sizes(), " (tensor_indices_or_sections).");
  if (where.dim() == 0) return tensor_split(input, where.item<int64_t>(), dim);
  Dims indices;
  const Tensor host = contiguous(where.to(Device()));
  for (int64_t i = 0; i < host.numel(); ++i) indices.push_back(host.data_ptr<int64_t>()[i]);
  return tensor_split(input, IntList(indices), dim);
}

namespace {

/// Splits along a dimension, which so many dimensions have; `where` is a number of equal parts, or indices.
TensorVector split_along(const Tensor& input, int64_t where, int64_t dim, int64_t least, const char* op) {
  VESTA_CHECK(input.dim() >= least, runtime, op, ": requires a tensor with at least ", least, " dimension(s), but got ",
              input.dim(), ".");
  const int64_t n = input.sizes()[size_t(dim)];
  VESTA_CHECK(where > 0 && n % where == 0, runtime, op, ": attempted to split along dimension ", dim,
              ", but the size of the dimension ", n, " is not divisible by the split_size ", where, ".");
  return tensor_split(input, where, dim);
}
TensorVector split_along(const Tensor& input, IntList where, int64_t dim, int64_t least, const char* op) {
  VESTA_CHECK(input.dim() >= least, runtime, op, ": requires a tensor with at least ", least, " dimension(s), but got ",
              input.dim(), ".");
  return tensor_split(input, where, dim);
}

/// Gives a tensor at least so many dimensions, as atleast_1d, 2d and 3d do.
Tensor at_least(const Tensor& t, int64_t dims) {
  Tensor r = t;
  if (r.dim() == 0) r = reshape(r, 1);
  if (r.dim() == 1 && dims >= 2) r = unsqueeze(r, 0);
  if (r.dim() == 2 && dims >= 3) r = unsqueeze(r, -1);
  return r;
}

template <class F>
TensorVector each(TensorList tensors, const char* op, F f) {
  VESTA_CHECK(!tensors.empty(), runtime, op, ": expected a non-empty list of tensors (tensors).");
  TensorVector r;
  for (const Tensor& t : tensors) r.push_back(f(t));
  return r;
}

}  // namespace

TensorVector hsplit_int_composite(const Tensor& input, int64_t sections) {
  return split_along(input, sections, input.dim() == 1 ? 0 : 1, 1, "hsplit");
}
TensorVector hsplit_array_composite(const Tensor& input, IntList indices) {
  return split_along(input, indices, input.dim() == 1 ? 0 : 1, 1, "hsplit");
}
TensorVector vsplit_int_composite(const Tensor& input, int64_t sections) {
  return split_along(input, sections, 0, 2, "vsplit");
}
TensorVector vsplit_array_composite(const Tensor& input, IntList indices) {
  return split_along(input, indices, 0, 2, "vsplit");
}
TensorVector dsplit_int_composite(const Tensor& input, int64_t sections) {
  return split_along(input, sections, 2, 3, "dsplit");
}
TensorVector dsplit_array_composite(const Tensor& input, IntList indices) {
  return split_along(input, indices, 2, 3, "dsplit");
}

Tensor hstack_composite(TensorList tensors) {
  const TensorVector list = each(tensors, "hstack", [](const Tensor& t) { return at_least(t, 1); });
  return cat(list, list[0].dim() == 1 ? 0 : 1);
}
Tensor vstack_composite(TensorList tensors) {
  return cat(each(tensors, "vstack", [](const Tensor& t) { return at_least(t, 2); }), 0);
}
Tensor dstack_composite(TensorList tensors) {
  return cat(each(tensors, "dstack", [](const Tensor& t) { return at_least(t, 3); }), 2);
}
Tensor column_stack_composite(TensorList tensors) {
  return cat(
      each(tensors, "column_stack", [](const Tensor& t) { return t.dim() < 2 ? reshape(t, {t.numel(), 1}) : t; }), 1);
}

}  // namespace vesta
