// The driver of reductions. A tour: Geometry splits the dimensions into kept and reduced ones and merges each kind; a
// Task is one leaf of the tree (a run, or a block of rows over a strip of columns); results are combined in the order
// of the leaves. See Note [Trees of reductions] in core/ops/reduce.h.
#include <vesta/core/cpu/reduce.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/reduce_checks.h>
#include <vesta/core/ops/view.h>

VESTA_DECLARE_ON_ISA(
    void register_reduce(vesta::cpu::ReduceKernels (&table)[vesta::cpu::kNumReductions][vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

ReduceKernels reduce_kernels[kNumReductions][kNumDTypes];

constexpr int64_t kGrainBytes = 1 << 17;  // a thread's share of bytes below which a second thread does not pay
constexpr int64_t kStripBytes = 1024;  // of a row that one task reads at least: lines that the prefetcher follows

struct ReducedAxis {
  int64_t size, stride;  // stride in bytes
};
using Axes = SmallVector<ReducedAxis, 8>;

/// Merges neighbouring axes that continue each other.
void merge(Axes& axes) {
  size_t m = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (m && axes[m - 1].stride == axes[i].stride * axes[i].size)
      axes[m - 1] = {axes[m - 1].size * axes[i].size, axes[i].stride};
    else axes[m++] = axes[i];
  }
  axes.resize(m, ReducedAxis{});
}

/// Returns the byte offset of element `i` of the axes, row-major.
int64_t offset_of(const Axes& axes, int64_t i) {
  int64_t o = 0;
  for (size_t d = axes.size(); d-- > 0;) {
    o += i % axes[d].size * axes[d].stride;
    i /= axes[d].size;
  }
  return o;
}

int64_t count_of(const Axes& axes) {
  int64_t n = 1;
  for (const ReducedAxis& a : axes) n *= a.size;
  return n;
}

class Reduce {
 public:
  Reduce(const ReduceKernels& k, const Tensor& x, uint64_t mask) : k_(k), x_(x.impl()->data()), dtype_(x.dtype()) {
    item_ = itemsize(dtype_), acc_ = k.acc_bytes;
    for (int64_t d = 0; d < x.dim(); ++d) {
      ReducedAxis a{x.sizes()[size_t(d)], x.strides()[size_t(d)] * item_};
      if (a.size == 1) continue;
      (mask >> d & 1 ? reduced_ : kept_).push_back(a);
    }
    // Reduced axes may go in any order: by stride, which is that of memory. Kept ones stay in the result's order.
    std::sort(reduced_.begin(), reduced_.end(),
              [](const ReducedAxis& a, const ReducedAxis& b) { return a.stride > b.stride; });
    merge(reduced_);
    merge(kept_);
    // The inner kept axis may become columns: then results of one strip lie side by side, in the result as well.
    if (!kept_.empty() && kept_.back().stride == item_ && !(reduced_.size() && reduced_.back().stride == item_)) {
      columns_ = kept_.back().size;
      kept_.pop_back();
    }
    inner_ = reduced_.empty() ? ReducedAxis{1, item_} : reduced_.back();
    if (!reduced_.empty()) reduced_.pop_back();
  }

  /// Writes the accumulators of all results to `out`, row-major.
  void run(char* out) {
    const int64_t results = count_of(kept_), width = columns_;
    leaf_ = columns_ > 1 || by_columns() ? kReduceRows : kReduceRun;
    leaves_ = (inner_.size + leaf_ - 1) / leaf_ * count_of(reduced_);
    const int64_t result_bytes = width * acc_;
    int64_t bytes_per_result = std::max<int64_t>(1, inner_.size * count_of(reduced_) * width * item_);
    bool wide = results * width >= 8 || leaves_ == 1;
    if (wide && results > 1) {
      parallel_for(results, std::max<int64_t>(1, kGrainBytes / bytes_per_result), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end;) r = line_of_results(r, end, out);
      });
    } else {
      for (int64_t r = 0; r < results; ++r) one_result(x_ + offset_of(kept_, r), out + r * result_bytes, true);
    }
  }

 private:
  bool by_columns() const { return columns_ > 1; }

  /// Reduces every leaf of the result at `x` to `partial` [leaves, columns]: a task is a strip of a leaf.
  void leaves_in_strips(const char* x, char* partial) const {
    int64_t strip = std::max<int64_t>(1, kStripBytes / item_);
    const int64_t tasks = 4 * num_threads();  // which balance the threads; a column's result does not depend on them
    while (strip < columns_ && leaves_ * ceil_div(columns_, 2 * strip) >= tasks) strip *= 2;
    const int64_t strips = ceil_div(columns_, strip);
    const int64_t bytes = std::max<int64_t>(1, std::min(leaf_, inner_.size) * std::min(strip, columns_) * item_);
    parallel_for(leaves_ * strips, std::max<int64_t>(1, kGrainBytes / bytes), [&](int64_t b, int64_t e) {
      while (b < e) {  // neighbouring strips of a leaf at once
        const int64_t i = b / strips, first = b % strips, last = std::min(strips, first + e - b);
        const Leaf leaf = leaf_at(x, i);
        k_.columns(leaf.data + first * strip * item_, inner_.stride, leaf.size,
                   std::min(columns_, last * strip) - first * strip, partial + (i * columns_ + first * strip) * acc_);
        b += last - first;
      }
    });
  }

  /// Computes the results from number r on that lie along the last kept axis, up to `end`: a division for all of them,
  /// not one for each. Returns the number of the next result.
  int64_t line_of_results(int64_t r, int64_t end, char* out) const {
    const ReducedAxis last = kept_.back();
    const int64_t next = std::min(end, r - r % last.size + last.size);
    const char* x = x_ + offset_of(kept_, r);
    if (k_.runs != nullptr && leaves_ == 1 && !by_columns() && inner_.stride == item_) {
      k_.runs(x, last.stride, next - r, inner_.size, out + r * acc_);
      return next;
    }
    for (; r < next; ++r, x += last.stride) one_result(x, out + r * columns_ * acc_, false);
    return r;
  }

  struct Leaf {
    const char* data;
    int64_t size;  // along the inner axis
  };
  /// Returns leaf number i of the result at `x`.
  Leaf leaf_at(const char* x, int64_t i) const {
    const int64_t per_run = ceil_div(inner_.size, leaf_), begin = i % per_run * leaf_;
    return {x + offset_of(reduced_, i / per_run) + begin * inner_.stride, std::min(leaf_, inner_.size - begin)};
  }

  /// Reduces n elements, or rows, along the inner axis.
  void run_of(const char* at, int64_t n, char* out) const {
    if (by_columns()) {
      k_.columns(at, inner_.stride, n, columns_, out);
    } else if (inner_.stride == item_) {
      k_.run(at, n, out);
    } else {
      std::unique_ptr<char[]> buffer(new char[size_t(n * item_)]);
      convert(dtype_, dtype_)(at, inner_.stride, buffer.get(), item_, n);
      k_.run(buffer.get(), n, out);
    }
  }

  void one_result(const char* x, char* out, bool parallel) const {
    const bool strips = parallel && by_columns();
    if (leaves_ == 1) return strips ? leaves_in_strips(x, out) : run_of(x, inner_.size, out);
    const int64_t bytes = columns_ * acc_;
    std::unique_ptr<char[]> partial(new char[size_t(leaves_ * bytes)]);
    auto range = [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const Leaf leaf = leaf_at(x, i);
        run_of(leaf.data, leaf.size, partial.get() + i * bytes);
      }
    };
    int64_t leaf_bytes = std::max<int64_t>(1, std::min(leaf_, inner_.size) * columns_ * item_);
    if (strips) leaves_in_strips(x, partial.get());
    else if (parallel) parallel_for(leaves_, std::max<int64_t>(1, kGrainBytes / leaf_bytes), range);
    else range(0, leaves_);
    // neighbours first, then neighbours of neighbours: a balanced tree over the leaves
    for (int64_t step = 1; step < leaves_; step *= 2) {
      for (int64_t i = 0; i + step < leaves_; i += 2 * step) {
        k_.combine(partial.get() + i * bytes, partial.get() + (i + step) * bytes, columns_);
      }
    }
    std::memcpy(out, partial.get(), size_t(bytes));
  }

  const ReduceKernels& k_;
  const char* x_;
  DType dtype_;
  int64_t item_, acc_;
  Axes kept_, reduced_;
  ReducedAxis inner_;
  int64_t columns_ = 1, leaf_ = 0, leaves_ = 1;
};

/// Reduces to a tensor of the accumulator's dtype.
Tensor reduce(Reduction op, const Tensor& x, const ReduceShape& shape) {
  const ReduceKernels& k = reduce_kernels[int(op)][int(x.dtype())];
  Tensor out = result_tensor(shape.sizes, k.acc, x.device());
  if (out.numel() == 0) return out;
  char* to = out.impl()->data();
  if (shape.count == 0) {
    k.identity(to, out.numel());
  } else if (out.numel() == 1 && x.is_contiguous() && x.numel() <= kReduceRun) {
    k.run(x.impl()->data(), x.numel(), to);  // the smallest case: no geometry
  } else {
    Reduce(k, x, shape.mask).run(to);
  }
  return out;
}

Tensor cast(const Tensor& t, DType d) { return t.dtype() == d ? t : _to_copy(t, d); }

// ---- moments ----

ReduceKernels moment_kernels[kNumDTypes];

template <class T>
void moments_of_run(const char* x, int64_t n, char* out) {
  auto& s = *reinterpret_cast<Statistics*>(out);
  s.count = double(n);
  row_kernels(dtype_of<T>).statistics(x, 1, n, &s.mean, &s.squares, {});
}
/// Does that for rows `stride` bytes apart, many at a time where they lie one after the other.
template <class T>
void moments_of_runs(const char* x, int64_t stride, int64_t rows, int64_t n, char* out) {
  constexpr int64_t kRows = 64;
  auto* const to = reinterpret_cast<Statistics*>(out);
  double mean[kRows], squares[kRows];
  const int64_t together = stride == n * int64_t(sizeof(T)) ? kRows : 1;
  for (int64_t r = 0; r < rows; r += together) {
    const int64_t count = std::min(together, rows - r);
    row_kernels(dtype_of<T>).statistics(x + r * stride, count, n, mean, squares, {});
    for (int64_t i = 0; i < count; ++i) to[r + i] = {double(n), mean[i], squares[i]};
  }
}
void combine_moments(char* into, const char* from, int64_t n) {
  auto* const a = reinterpret_cast<Statistics*>(into);
  const auto* const b = reinterpret_cast<const Statistics*>(from);
  for (int64_t i = 0; i < n; ++i) a[i].add(b[i]);
}

void register_moments() {
  ColumnMoments columns[kNumDTypes] = {};
  VESTA_ON_ISA(register_column_moments, columns);
  const auto one = [&]<class T>() {
    const int d = int(dtype_of<T>);
    moment_kernels[d] = {.acc_bytes = sizeof(Statistics),
                         .run = &moments_of_run<T>,
                         .runs = &moments_of_runs<T>,
                         .columns = columns[d],
                         .combine = &combine_moments};
  };
  one.template operator()<float>(), one.template operator()<double>();
  one.template operator()<Half>(), one.template operator()<BFloat16>();
}

TensorPair moments_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim);

/// Computes squares again in double whose parts were below the range of float32: of those that are 0, though elements
/// differ, and those that are too small for their parts to be floats of all digits. (Kernels see to those above it.)
void mend_small(const Tensor& input, const MaybeDims& dim, bool keepdim, int64_t count, const Tensor& squares) {
  if (input.dtype() == DType::float64 || input.dtype() == DType::float16 || count == 1) return;
  const double least = double(count) * double(std::numeric_limits<float>::min());
  double* const s = elements<double>(squares);
  if (std::none_of(s, s + squares.numel(), [&](double v) { return v < least; })) return;
  const Tensor differ = contiguous_values(ne(amax(input, dim, keepdim), amin(input, dim, keepdim)));
  const bool* const varies = elements<bool>(differ);
  const auto is_small = [&](int64_t i) { return s[i] < least && varies[i]; };
  int64_t i = 0;
  while (i < squares.numel() && !is_small(i)) ++i;
  if (i == squares.numel()) return;
  const Tensor exact = std::get<0>(moments_kernel(input.to(DType::float64), dim, keepdim));
  for (; i < squares.numel(); ++i) {
    if (is_small(i)) s[i] = elements<double>(exact)[i];
  }
}

/// Sums of squared deviations, in double, and means, in one pass over memory. Where a mean is not finite, an infinity
/// may have made NaN of it: those come from sums.
TensorPair moments_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  const ReduceShape shape = reduce_shape(input, dim, keepdim, "var");
  if (!is_float(input.dtype()) || shape.count == 0) return ops::_moments.body()(input, dim, keepdim);
  const DType wide = compute_type(input.dtype());
  const Tensor squares = empty_tensor(shape.sizes, DType::float64), mean = empty_tensor(shape.sizes, wide);
  const int64_t n = squares.numel();
  if (n == 0) return {squares, mean};
  std::unique_ptr<Statistics[]> all(new Statistics[size_t(n)]);
  Reduce(moment_kernels[int(input.dtype())], input, shape.mask).run(reinterpret_cast<char*>(all.get()));
  bool finite = true;
  visit<kFloats>(wide, [&]<class T>() {
    if constexpr (std::is_same_v<T, compute_t<T>>) {
      double* const s = elements<double>(squares);
      T* const m = elements<T>(mean);
      for (int64_t i = 0; i < n; ++i) {
        s[i] = all[size_t(i)].squares, m[i] = T(all[size_t(i)].mean);
        finite = finite && std::isfinite(m[i]);
      }
    }
  });
  mend_small(input, dim, keepdim, shape.count, squares);
  return {squares, finite ? mean : vesta::mean(input.to(wide), dim, keepdim)};
}

Tensor squares_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  return reduce(Reduction::squares, input, reduce_shape(input, dim, keepdim, "norm"));
}

// ---- sums ----

Tensor sum_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = sum_types(input.dtype(), dtype);
  return cast(reduce(Reduction::sum, cast(input, types.input), reduce_shape(input, dim, keepdim, "sum")), types.result);
}

Tensor mean_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = mean_types(input.dtype(), dtype);
  ReduceShape shape = reduce_shape(input, dim, keepdim, "mean");
  Tensor total = reduce(Reduction::sum, cast(input, types.input), shape);
  double count = double(shape.count);
  visit<kFloats | kComplexes>(total.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      T* p = elements<T>(total);
      int64_t i = 0;
      if constexpr (std::is_same_v<T, float>) {
        typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
        const Four divisor = Four{} + float(count);
        for (; count <= 0x1p24 && i + 4 <= total.numel(); i += 4) *reinterpret_cast<Four*>(p + i) /= divisor;
      }
      for (; i < total.numel(); ++i) {
        if constexpr (is_complex(dtype_of<T>)) p[i] /= typename T::value_type(count);
        else p[i] = T(double(p[i]) / count);  // the same bits, and a float cannot hold a count above 2^24
      }
    }
  });
  return cast(total, types.result);
}

Tensor product_kernel(const Tensor& input, int64_t dim, bool keepdim, MaybeDType dtype) {
  const SumTypes types = sum_types(input.dtype(), dtype);
  const ReduceShape shape = reduce_shape(input, MaybeDims(dim), keepdim, "prod");
  return cast(reduce(Reduction::product, cast(input, types.input), shape), types.result);
}

template <Reduction op>
Tensor extremum_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  ReduceShape shape = extremum_shape(input, dim, keepdim, op == Reduction::max ? "amax" : "amin");
  return cast(reduce(op, input, shape), input.dtype());
}

template <Reduction op>
Tensor logical_kernel(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  if (dim && IntSpan(*dim).empty()) return none_reduced(input);
  Tensor r = reduce(op, input, reduce_shape(input, dim, keepdim, op == Reduction::any ? "any" : "all"));
  return input.dtype() == DType::uint8 ? cast(r, DType::uint8) : r;  // as in PyTorch
}

constexpr int64_t kPiece = 1 << 16;  // elements of a row that are searched (and, where strided, copied) at once

/// Returns the index of the extremum in elements of a row that need not be contiguous.
int64_t find_in(const ReduceKernels& k, DType d, const char* at, int64_t stride, int64_t n, char* buffer) {
  const int64_t item = itemsize(d);
  if (stride != item) convert(d, d)(at, stride, buffer, item, n);
  return k.find(stride != item ? buffer : at, n);
}

/// Finds the indices of the extrema of long rows: of each piece, then among the winners, the first of equal ones.
void find_in_pieces(const ReduceKernels& k, DType d, const char* base, const Axes& kept, int64_t stride, int64_t n,
                    int64_t* indices) {
  const int64_t item = itemsize(d), pieces = (n + kPiece - 1) / kPiece, rows = count_of(kept);
  std::vector<int64_t> places(size_t(rows * pieces));
  std::vector<char> winners(size_t(rows * pieces * item));
  parallel_for(rows * pieces, 1, [&](int64_t begin, int64_t end) {
    std::unique_ptr<char[]> buffer(stride == item ? nullptr : new char[size_t(kPiece * item)]);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPiece;
      const char* row = base + offset_of(kept, i / pieces);
      int64_t place = first + find_in(k, d, row + first * stride, stride, std::min(kPiece, n - first), buffer.get());
      places[size_t(i)] = place;
      std::memcpy(winners.data() + i * item, row + place * stride, size_t(item));
    }
  });
  for (int64_t r = 0; r < rows; ++r) {
    indices[r] = places[size_t(r * pieces + k.find(winners.data() + r * pieces * item, pieces))];
  }
}

constexpr int64_t kFewestColumns = 16;  // side by side, from which they are searched together

/// Finds the indices of the extrema of columns that lie side by side: the last of `kept`.
void find_columns(const ReduceKernels& k, int64_t item, const char* base, const Axes& kept, int64_t stride, int64_t n,
                  int64_t* indices) {
  const int64_t cols = kept.back().size, lines = count_of(kept) / cols;
  int64_t strip = std::max<int64_t>(64, kStripBytes / 4 / item);
  while (strip < cols && lines * ceil_div(cols, 2 * strip) >= 2 * num_threads()) strip *= 2;
  const int64_t strips = ceil_div(cols, strip), all = lines * strips;
  parallel_for(all, std::max<int64_t>(1, kGrainBytes / (n * strip * item)), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t c = t % strips * strip, first = t / strips * cols + c;
      k.find_columns(base + offset_of(kept, first), stride, n, std::min(strip, cols - c), indices + first);
    }
  });
}

/// Finds the indices of the extrema along one dimension.
void find_along(Reduction op, const Tensor& x, int64_t dim, int64_t* indices) {
  const ReduceKernels& k = reduce_kernels[int(op)][int(x.dtype())];
  const int64_t item = itemsize(x.dtype());
  int64_t n = x.dim() ? x.sizes()[size_t(dim)] : 1;
  int64_t stride = x.dim() ? x.strides()[size_t(dim)] * item : item;
  Axes kept;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != dim) kept.push_back({x.sizes()[size_t(d)], x.strides()[size_t(d)] * item});
  }
  const char* base = x.impl()->data();
  const bool side_by_side = !kept.empty() && kept.back().stride == item && kept.back().size >= kFewestColumns;
  if (side_by_side && stride != item && n < std::numeric_limits<int32_t>::max()) {
    return find_columns(k, item, base, kept, stride, n, indices);
  }
  if (n > kPiece) return find_in_pieces(k, x.dtype(), base, kept, stride, n, indices);
  parallel_for(count_of(kept), std::max<int64_t>(1, kGrainBytes / (n * item)), [&](int64_t begin, int64_t end) {
    std::unique_ptr<char[]> buffer(stride == item ? nullptr : new char[size_t(n * item)]);
    for (int64_t r = begin; r < end; ++r) {
      indices[r] = find_in(k, x.dtype(), base + offset_of(kept, r), stride, n, buffer.get());
    }
  });
}

template <Reduction op>
Tensor places(const Tensor& input, int64_t dim, bool keepdim, const char* name) {
  ReduceShape shape = place_shape(input, dim, keepdim, name);
  Tensor indices = result_tensor(shape.sizes, DType::int64, input.device());
  if (indices.numel()) find_along(op, input, wrap_dim(dim, input.dim(), name), elements<int64_t>(indices));
  return indices;
}

template <Reduction op>
TensorPair extremum_dim_kernel(const Tensor& input, int64_t dim, bool keepdim) {
  const char* name = op == Reduction::max ? "max" : "min";
  Tensor indices = places<op>(input, dim, true, name);
  Tensor values = input.dim() ? gather(input, dim, indices) : clone(input);
  if (!keepdim && input.dim()) return {squeeze(values, dim), squeeze(indices, dim)};
  return {values, input.dim() ? indices : reshape(indices, IntList())};
}

template <Reduction op>
Tensor arg_kernel(const Tensor& input, MaybeInt dim, bool keepdim) {
  const char* name = op == Reduction::max ? "argmax" : "argmin";
  check_place_input(input, dim, name);
  if (dim) return places<op>(input, *dim, keepdim, name);
  Tensor flat = reshape(input, {-1});
  Tensor r = places<op>(flat, 0, false, name);
  return keepdim ? reshape(r, Dims(size_t(input.dim()), 1)) : r;
}

}  // namespace

void register_reduce() {
  VESTA_ON_ISA(register_reduce, reduce_kernels);
  register_moments();
  constexpr auto cpu = DeviceType::cpu;
  ops::sum_dim.set_kernel(cpu, sum_kernel);
  ops::mean_dim.set_kernel(cpu, mean_kernel);
  ops::_moments.set_kernel(cpu, moments_kernel);
  ops::_sum_of_squares.set_kernel(cpu, squares_kernel);
  ops::prod_dim_int.set_kernel(cpu, product_kernel);
  ops::amax.set_kernel(cpu, extremum_kernel<Reduction::max>);
  ops::amin.set_kernel(cpu, extremum_kernel<Reduction::min>);
  ops::any_dims.set_kernel(cpu, logical_kernel<Reduction::any>);
  ops::all_dims.set_kernel(cpu, logical_kernel<Reduction::all>);
  ops::max_dim.set_kernel(cpu, extremum_dim_kernel<Reduction::max>);
  ops::min_dim.set_kernel(cpu, extremum_dim_kernel<Reduction::min>);
  ops::argmax.set_kernel(cpu, arg_kernel<Reduction::max>);
  ops::argmin.set_kernel(cpu, arg_kernel<Reduction::min>);
}

}  // namespace vesta::cpu
