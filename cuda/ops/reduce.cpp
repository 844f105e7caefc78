// Reductions: sum, mean, product, extrema, any, all, and the indices of extrema.
//
// Note [Stages of a reduction]
// A result is reduced by one team of threads (cuda/kernels/teams.cuh), or, if it is long or results are few, in pieces
// of a length that depends on the shape alone; a second stage reduces the pieces' results in the same way. A stage
// works along rows (the reduced elements of a result are contiguous, or few results are) or down columns (results are
// contiguous; a warp loads 32 packs of neighbouring columns at once). Rejected: one launch whose last block finishes
// (it saves a launch of 3 us in the largest reductions only, and needs a counter that must be zero again for the next
// stream), and a number of pieces that depends on the GPU (another GPU would give other bits).
#include <algorithm>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/reduce_checks.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/kernels/alignment.h>
#include <vesta/cuda/kernels/histogram.h>
#include <vesta/cuda/kernels/loss_sum.h>
#include <vesta/cuda/kernels/moments.h>
#include <vesta/cuda/kernels/reduce.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/reduce_whole.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

constexpr int64_t kRowPiece = 32768, kRowPieceMin = 4096;  // elements
constexpr int64_t kColumnPiece = 1024, kColumnPieceMin = 64;  // rows
constexpr int64_t kTeams = 512;  // so many blocks keep the largest GPUs busy
constexpr int64_t kFewElements = 32;  // of a result: work for one thread

struct Axis {
  int64_t size, stride;
};
using AxisList = SmallVector<Axis, 8>;

/// Merges neighbouring axes that continue each other; outermost first.
void merge(AxisList& axes) {
  size_t m = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (m && axes[m - 1].stride == axes[i].stride * axes[i].size)
      axes[m - 1] = {axes[m - 1].size * axes[i].size, axes[i].stride};
    else axes[m++] = axes[i];
  }
  axes.resize(m, Axis{});
}

Axes innermost_first(const AxisList& from) {
  Axes to;
  to.count = int(from.size());
  for (int d = 0; d < to.count; ++d) {
    const Axis& a = from[from.size() - 1 - size_t(d)];
    to.sizes[d] = a.size, to.strides[d] = a.stride;
  }
  return to;
}

/// A tensor's dimensions, split into kept and reduced ones, each kind merged.
struct Geometry {
  AxisList kept, reduced;
  Geometry(const Tensor& x, uint64_t mask) {
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (x.sizes()[size_t(d)] != 1) {
        (mask >> d & 1 ? reduced : kept).push_back({x.sizes()[size_t(d)], x.strides()[size_t(d)]});
      }
    }
    // Reduced axes may go in any order: by stride, which is that of memory. Kept ones stay in the result's order.
    std::sort(reduced.begin(), reduced.end(), [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
    merge(reduced);
    merge(kept);
  }
  bool fits() const { return kept.size() <= size_t(kMaxAxes) && reduced.size() <= size_t(kMaxAxes); }
};

bool is_search(Reduction op) { return op == Reduction::argmax || op == Reduction::argmin; }

/// Returns the dtype of the pieces of a result, the accumulator of elements of d.
DType partial_dtype(Reduction op, DType d) {
  if (op == Reduction::any || op == Reduction::all) return DType::bool_;
  if (op == Reduction::squares) return compute_type(d);
  if (op == Reduction::logsumexp)
    return d == DType::float64 || d == DType::complex128 ? DType::complex128 : DType::complex64;
  if (op != Reduction::sum && op != Reduction::product) return d;
  if (!is_differentiable(d)) return DType::int64;
  return d == DType::float16 || d == DType::bfloat16 ? DType::float32 : d;
}

/// Returns the dtype of the pieces of a result.
DType partial_dtype(const ReduceStage& s) {
  if (s.op == Reduction::loss_terms) return compute_type(s.dtype);
  if (s.op == Reduction::class_losses) {
    return s.classes->dtype == DType::float64 ? DType::complex128 : DType::complex64;
  }
  return partial_dtype(s.op, s.dtype);
}

/// Returns column_pack() of a stage: 16-bit elements have sums of 32 bits, but for sums and products of integers, for
/// indices and for logsumexp.
int column_pack_of(const ReduceStage& s) {
  const bool wide_sum = (s.op == Reduction::sum || s.op == Reduction::product) && !is_differentiable(s.dtype);
  return column_pack(size_t(itemsize(s.dtype)), is_search(s.op) || wide_sum || s.op == Reduction::logsumexp ? 8 : 4);
}

/// Returns whether every pack of 16 bytes along the reduced axis is aligned and lies in one run.
bool packs_fit(const ReduceStage& s) {
  const int64_t item = itemsize(s.dtype), pack = std::max<int64_t>(1, 16 / item);
  if (reinterpret_cast<uintptr_t>(s.x) % 16 != 0 || s.reduced.count == 0 || s.reduced.strides[0] != 1) return false;
  if (s.terms && !is_aligned(s.terms->target)) return false;  // of a loss, which is read as x is
  if (s.reduced.count > 1 && s.reduced.sizes[0] % pack != 0) return false;
  auto aligned = [&](const Axes& a, int first) {
    for (int d = first; d < a.count; ++d) {
      if (a.strides[d] * item % 16 != 0) return false;
    }
    return true;
  };
  return aligned(s.reduced, 1) && aligned(s.kept, 0);
}

/// Returns whether every pack of columns is aligned, and none is cut off.
bool column_packs_fit(const ReduceStage& s) {
  const int64_t item = itemsize(s.dtype), pack = column_pack_of(s);
  auto whole = [&](const Axes& a) {
    return std::all_of(a.strides, a.strides + a.count, [&](int64_t stride) { return stride % pack == 0; });
  };
  return reinterpret_cast<uintptr_t>(s.x) % uintptr_t(pack * item) == 0 && s.columns % pack == 0 && whole(s.kept) &&
         whole(s.reduced);
}

/// Chooses rows or columns, and cuts long results into pieces.
void plan(ReduceStage& s, bool columns) {
  const int64_t count = s.reduced.numel();
  const bool side_by_side = s.kept.count && s.kept.strides[0] == 1 && !(s.reduced.count && s.reduced.strides[0] == 1);
  s.per_thread = side_by_side && count <= kFewElements;
  if (columns || (side_by_side && !s.per_thread)) {
    if (!columns) {
      s.columns = s.kept.sizes[0];
      --s.kept.count;
      std::copy_n(s.kept.sizes + 1, s.kept.count, s.kept.sizes);
      std::copy_n(s.kept.strides + 1, s.kept.count, s.kept.strides);
    }
  }
  const int64_t tile = 32 * column_pack_of(s);
  const int64_t results = s.kept.numel() * (s.columns ? (s.columns + tile - 1) / tile : 1);
  const int64_t least = s.columns ? kColumnPieceMin : kRowPieceMin;
  s.piece = s.columns ? kColumnPiece : kRowPiece;
  auto pieces = [&] { return std::max<int64_t>(1, (count + s.piece - 1) / s.piece); };
  while (s.piece > least && results * pieces() < kTeams) s.piece /= 2;
  s.pieces = pieces();
  s.packed = s.columns ? column_packs_fit(s) : packs_fit(s);
  // A grid has 2^31 blocks; a block has 8 warps, each of which takes one or more short rows.
  const int64_t most = int64_t(1) << (s.columns || count > 1024 ? 31 : 34);
  VESTA_CHECK(results * s.pieces < most, not_implemented, s.name, ": expected fewer than ", most, " results of ", count,
              " elements on CUDA, got ", results, ". Reduce parts of the input.");
}

void queue(const ReduceStage& s) {
  switch (s.op) {
    case Reduction::sum: return reduce_sum(s);
    case Reduction::product: return reduce_product(s);
    case Reduction::maximum:
    case Reduction::minimum: return reduce_extremum(s);
    case Reduction::any:
    case Reduction::all: return reduce_logical(s);
    case Reduction::argmax:
    case Reduction::argmin: return reduce_places(s);
    case Reduction::squares: return reduce_squares(s);
    case Reduction::logsumexp: return reduce_logsumexp(s);
    case Reduction::loss_terms: return reduce_loss_terms(s);
    case Reduction::class_losses: return reduce_class_losses(s);
  }
}

/// Runs stages until every result is one piece; the last one writes to the outputs that `s` names.
void run_stages(ReduceStage s, Device device) {
  const ReduceStage last = s;
  Tensor partial, partial_places;  // of the previous stage
  plan(s, false);
  while (s.pieces > 1) {
    const int64_t width = std::max<int64_t>(1, s.columns), outer = s.kept.numel();
    const DType d = partial_dtype(s);
    const int64_t n = outer * s.pieces * width;
    Tensor values = empty_tensor({&n, 1}, d, device), places;
    if (is_search(s.op)) places = empty_tensor({&n, 1}, DType::int64, device);
    s.out = values.impl()->data(), s.out_dtype = d, s.divisor = -1;
    s.out_places = is_search(s.op) ? places.data_ptr<int64_t>() : nullptr;
    queue(s);
    ReduceStage next = last;
    next.x = s.out, next.dtype = d, next.places = s.out_places;
    if (last.op == Reduction::squares || last.op == Reduction::loss_terms)
      next.op = Reduction::sum, next.terms = nullptr;
    next.kept = Axes{1, {outer}, {s.pieces * width}};
    next.reduced = Axes{1, {s.pieces}, {width}};
    next.columns = s.columns;
    partial = values, partial_places = places;  // the previous ones may be freed: their reader is queued
    plan(next, s.columns > 0);
    s = next;
  }
  queue(s);
}

}  // namespace

void reduce_whole(ReduceStage s, const Tensor& x) {
  s.dtype = x.dtype(), s.stream = stream_of(x), s.x = x.impl()->data();
  s.reduced = Axes{1, {x.numel()}, {1}};
  run_stages(s, x.device());
}

namespace {

/// Starts a stage over `x`. A tensor of too many axes is copied, the reduced ones last, and `x` is the copy then.
ReduceStage stage_of(Tensor& x, uint64_t mask, Reduction op, const char* name) {
  Geometry g(x, mask);
  if (!g.fits()) {
    Dims order;
    for (int reduced = 0; reduced < 2; ++reduced) {
      for (int64_t d = 0; d < x.dim(); ++d) {
        if (int(mask >> d & 1) == reduced) order.push_back(d);
      }
    }
    uint64_t last = 0;
    for (size_t d = 0; d < order.size(); ++d) last |= (mask >> order[d] & 1) << d;
    x = contiguous_values(permute(x, order));
    g = Geometry(x, last);
  }
  ReduceStage s;
  s.name = name, s.op = op, s.dtype = x.dtype(), s.stream = stream_of(x);
  s.x = x.impl()->data();
  s.kept = innermost_first(g.kept), s.reduced = innermost_first(g.reduced);
  return s;
}

Tensor cast(const Tensor& t, DType d) { return t.dtype() == d ? t : _to_copy(t, d); }

/// A large input whose results are contiguous in memory, but not in the order of the result. It is reduced in memory
/// order, and the results, which are few in comparison, are then reordered.
struct Reordered {
  Tensor x;
  ReduceShape shape{};
  Dims back;
  bool needed = false;

  Reordered(const Tensor& input, uint64_t mask) {
    constexpr int64_t kLarge = 1 << 16;  // elements from which columns instead of strides pay for two more launches
    if (input.numel() < kLarge) return;
    Dims kept, reduced;
    for (int64_t d = 0; d < input.dim(); ++d) {
      if (mask >> d & 1) reduced.push_back(d);
      else kept.push_back(d);
    }
    auto stride = [&](int64_t d) { return input.sizes()[size_t(d)] == 1 ? 0 : input.strides()[size_t(d)]; };
    auto is_dense = [&](int64_t d) { return stride(d) == 1; };
    if (std::ranges::none_of(kept, is_dense) || std::ranges::any_of(reduced, is_dense)) return;
    Dims order = kept;
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return stride(a) > stride(b); });
    auto last_dense = [&](const Dims& dims) {
      for (size_t i = dims.size(); i-- > 0;) {
        if (stride(dims[i]) != 0) return is_dense(dims[i]);
      }
      return false;
    };
    if (last_dense(kept) || !last_dense(order)) return;
    needed = true;
    shape.count = 1;
    for (int64_t d : order) shape.sizes.push_back(input.sizes()[size_t(d)]);
    for (int64_t d : kept) back.push_back(std::find(order.begin(), order.end(), d) - order.begin());
    for (int64_t d : reduced) {
      shape.mask |= uint64_t(1) << order.size();
      shape.count *= input.sizes()[size_t(d)];
      order.push_back(d);
    }
    x = permute(input, order);
  }
  /// Brings results into the requested order and shape.
  Tensor restore(const Tensor& r, const ReduceShape& asked) const {
    return r.defined() ? reshape(contiguous_values(permute(r, back)), asked.sizes) : r;
  }
};

/// Reduces to a tensor of dtype `result`, which the kernel can write.
Tensor reduce(Reduction op, Tensor x, const ReduceShape& shape, DType result, const char* name, double divisor = -1) {
  DeviceGuard guard(x.device().index());
  if (const Reordered r(x, shape.mask); r.needed) {
    return r.restore(reduce(op, r.x, r.shape, result, name, divisor), shape);
  }
  Tensor out = result_tensor(shape.sizes, result, x.device());
  if (out.numel() == 0) return out;
  ReduceStage s = stage_of(x, shape.mask, op, name);
  s.out = out.impl()->data(), s.out_dtype = result, s.divisor = divisor;
  run_stages(s, x.device());
  return out;
}

/// Adds up, or multiplies, in the accumulator of types.input and gives types.result. 16-bit floats are not converted to
/// float32 first, because their accumulator is float32.
Tensor add_up(Reduction op, const Tensor& input, SumTypes types, const ReduceShape& shape, const char* name,
              double divisor) {
  const bool narrow = input.dtype() == DType::float16 || input.dtype() == DType::bfloat16;
  Tensor x = narrow && types.input == DType::float32 ? input : cast(input, types.input);
  const DType acc = partial_dtype(op, x.dtype());
  const bool direct = acc == DType::float32 && (types.result == DType::float16 || types.result == DType::bfloat16);
  return cast(reduce(op, x, shape, direct ? types.result : acc, name, divisor), types.result);
}

Tensor sum_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const ReduceShape shape = reduce_shape(input, dim, keepdim, "sum");
  return add_up(Reduction::sum, input, sum_types(input.dtype(), dtype), shape, "sum", -1);
}

Tensor mean_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = mean_types(input.dtype(), dtype);
  const ReduceShape shape = reduce_shape(input, dim, keepdim, "mean");
  return add_up(Reduction::sum, input, types, shape, "mean", double(shape.count));
}

Tensor product_kernel(const Tensor& input, int64_t dim, bool keepdim, MaybeDType dtype) {
  const ReduceShape shape = reduce_shape(input, MaybeDims(dim), keepdim, "prod");
  return add_up(Reduction::product, input, sum_types(input.dtype(), dtype), shape, "prod", -1);
}

template <Reduction op>
Tensor extremum_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  const char* name = op == Reduction::maximum ? "amax" : "amin";
  return reduce(op, input, extremum_shape(input, dim, keepdim, name), input.dtype(), name);
}

template <Reduction op>
Tensor logical_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  if (dim && IntSpan(*dim).empty()) return none_reduced(input);
  const char* name = op == Reduction::any ? "any" : "all";
  Tensor r = reduce(op, input, reduce_shape(input, dim, keepdim, name), DType::bool_, name);
  return input.dtype() == DType::uint8 ? cast(r, DType::uint8) : r;  // as in PyTorch
}

Tensor squares_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  if (!kFloats.has(input.dtype())) return ops::_sum_of_squares.body()(input, dim, keepdim);
  const DType wide = compute_type(input.dtype());
  return reduce(Reduction::squares, input, reduce_shape(input, dim, keepdim, "norm"), wide, "norm");
}

/// logsumexp of floats; of other dtypes, and of no elements, the op's own body.
Tensor logsumexp_kernel(const Tensor& input, IntList dim, bool keepdim) {
  if (!kFloats.has(input.dtype()) || input.numel() == 0) return ops::logsumexp.body()(input, dim, keepdim);
  const ReduceShape shape = reduce_shape(input, MaybeDims{IntSpan(dim)}, keepdim, "logsumexp");
  return reduce(Reduction::logsumexp, input, shape, input.dtype(), "logsumexp");
}

/// Finds values and indices; values are left undefined unless `with_values`.
TensorPair search(Reduction op, Tensor x, const ReduceShape& shape, bool with_values, const char* name) {
  DeviceGuard guard(x.device().index());
  if (const Reordered r(x, shape.mask); r.needed) {
    const auto [values, places] = search(op, r.x, r.shape, with_values, name);
    return {r.restore(values, shape), r.restore(places, shape)};
  }
  Tensor values = with_values ? result_tensor(shape.sizes, x.dtype(), x.device()) : Tensor();
  Tensor places = result_tensor(shape.sizes, DType::int64, x.device());
  if (places.numel() == 0) return {values, places};
  ReduceStage s = stage_of(x, shape.mask, op, name);
  s.out = with_values ? values.impl()->data() : nullptr;
  s.out_places = places.data_ptr<int64_t>();
  run_stages(s, x.device());
  return {values, places};
}

template <Reduction op>
TensorPair extremum_dim_kernel(const Tensor& input, int64_t dim, bool keepdim) {
  const char* name = op == Reduction::argmax ? "max" : "min";
  return search(op, input, place_shape(input, dim, keepdim && input.dim() > 0, name), true, name);
}

template <Reduction op>
Tensor arg_kernel(const Tensor& input, MaybeInt dim, bool keepdim) {
  const char* name = op == Reduction::argmax ? "argmax" : "argmin";
  check_place_input(input, dim, name);
  if (dim) return std::get<1>(search(op, input, place_shape(input, *dim, keepdim, name), false, name));
  Tensor flat = reshape(input, {-1}), r = std::get<1>(search(op, flat, place_shape(flat, 0, false, name), false, name));
  return keepdim ? reshape(r, Dims(size_t(input.dim()), 1)) : r;
}

constexpr int64_t kShortRow = 16384;  // a block is soon done with it
constexpr int64_t kMomentsPiece = 4096;  // of a longer one

/// Means and squares in one pass where the reduced dimensions are the last: of short rows at once, of longer ones of
/// pieces, which are joined. The number of results and strides have no say, as they must not change a result's bits.
TensorPair moments_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  const ReduceShape shape = reduce_shape(input, dim, keepdim, "var");
  const int64_t results = shape.count ? input.numel() / shape.count : 0;
  const auto is_last = [&] {  // the reduced dimensions
    int64_t n = 1;
    for (int64_t d = input.dim(); d-- > 0 && n < shape.count; n *= input.sizes()[size_t(d)]) {
      if (input.sizes()[size_t(d)] != 1 && !(shape.mask >> d & 1)) return false;
    }
    return true;
  };
  if (!kFloats.has(input.dtype()) || results == 0 || !is_last()) {
    return ops::_moments.body()(input, dim, keepdim);
  }
  DeviceGuard guard(input.device().index());
  const DType wide = input.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const Tensor x = contiguous_values(input);
  Tensor squares = empty_tensor(shape.sizes, wide, input.device()),
         mean = empty_tensor(shape.sizes, wide, input.device());
  MomentsLaunch l;
  l.name = "var", l.stream = stream_of(x), l.dtype = x.dtype(), l.x = x.impl()->data();
  l.mean = mean.impl()->data(), l.squares = squares.impl()->data();
  l.rows = results, l.n = shape.count;
  l.packed = rows_are_packs(l.n, l.dtype, {l.x});
  if (l.n <= kShortRow) {
    moments(l);
    return {squares, mean};
  }
  l.piece = kMomentsPiece;
  const int64_t parts = l.rows * ((l.n + l.piece - 1) / l.piece);
  const Tensor part_squares = empty_tensor(IntSpan(&parts, 1), wide, input.device()),
               part_mean = empty_tensor(IntSpan(&parts, 1), DType::float64, input.device());
  l.piece_mean = part_mean.data_ptr<double>();
  const JoinedMoments joined{l.stream, wide, l.piece_mean, part_squares.impl()->data(), l.mean, l.squares,
                             l.rows,   l.n,  l.piece};
  l.mean = nullptr, l.squares = part_squares.impl()->data();
  moments(l);
  join_moments(joined);
  return {squares, mean};
}

Tensor bin_counts_kernel(const Tensor& input, int64_t bins, double min, double max) {
  VESTA_CHECK(bins > 0 && max > min, value, "_bin_counts: expected parts of a range, got ", bins, " of [", min, ", ",
              max, "].");
  const Tensor x = contiguous_values(input);
  const OperandDevice device(x);
  Tensor counts = empty_tensor(Dims{bins}, DType::int64, x.device());
  fill_values(counts, Scalar(int64_t(0)), "_bin_counts");
  if (x.numel() == 0) return counts;
  HistogramLaunch l{.stream = device.stream(),
                    .dtype = x.dtype(),
                    .computed = bins_dtype(x.dtype(), bins, min, max),
                    .x = x.impl()->data(),
                    .n = x.numel(),
                    .bins = bins,
                    .min = min,
                    .max = max};
  l.counts = static_cast<unsigned long long*>(counts.data_ptr());
  run_histogram(l);
  return counts;
}

}  // namespace

void register_reduce() {
  ops::_bin_counts.set_kernel(DeviceType::cuda, bin_counts_kernel);
  constexpr auto cuda = DeviceType::cuda;
  ops::sum_dim.set_kernel(cuda, sum_kernel);
  ops::mean_dim.set_kernel(cuda, mean_kernel);
  ops::prod_dim_int.set_kernel(cuda, product_kernel);
  ops::amax.set_kernel(cuda, extremum_kernel<Reduction::maximum>);
  ops::amin.set_kernel(cuda, extremum_kernel<Reduction::minimum>);
  ops::any_dims.set_kernel(cuda, logical_kernel<Reduction::any>);
  ops::all_dims.set_kernel(cuda, logical_kernel<Reduction::all>);
  ops::max_dim.set_kernel(cuda, extremum_dim_kernel<Reduction::argmax>);
  ops::min_dim.set_kernel(cuda, extremum_dim_kernel<Reduction::argmin>);
  ops::argmax.set_kernel(cuda, arg_kernel<Reduction::argmax>);
  ops::argmin.set_kernel(cuda, arg_kernel<Reduction::argmin>);
  ops::_moments.set_kernel(cuda, moments_kernel);
  ops::_sum_of_squares.set_kernel(cuda, squares_kernel);
  ops::logsumexp.set_kernel(cuda, logsumexp_kernel);
}

}  // namespace vesta::cuda
