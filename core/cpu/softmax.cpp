// Softmax along a dimension and cross-entropy over rows: drivers of the row kernels.
#include <cmath>

#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>

VESTA_DECLARE_ON_ISA(void register_rows(vesta::cpu::RowKernels (&)[vesta::kNumDTypes]);
                     void register_row_columns(vesta::cpu::RowKernels (&)[vesta::kNumDTypes]);
                     void register_row_pixels(vesta::cpu::RowKernels (&)[vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

RowKernels rows[kNumDTypes];

constexpr int64_t kExpGrain = 8192;  // elements of exp that make a thread worthwhile

int64_t rows_per_piece(int64_t n) { return std::max<int64_t>(1, kExpGrain / std::max<int64_t>(n, 1)); }

/// Runs `row(x row, second's row, y row, n, whether y bypasses the caches)` along `dim`: over contiguous memory, the
/// dimension moved last where it is not.
template <class F>
Tensor along(const Tensor& x, const Tensor& second, int64_t dim, const char* op, F row) {
  check_floating(x, op);
  int64_t d = wrap_dim(dim, x.dim(), op);
  bool last = x.dim() == 0 || d == x.dim() - 1;
  auto ready = [&](const Tensor& t) { return contiguous_values(last ? t : transpose(t, d, -1)); };
  Tensor a = ready(x), b = second.defined() ? ready(second) : Tensor();
  // Where the dimension was moved, y is not the result: an out= that happens to have its shape must not take it.
  Tensor y = last ? result_tensor(a.sizes(), x.dtype(), x.device()) : empty_tensor(a.sizes(), x.dtype(), x.device());
  int64_t n = a.dim() ? a.sizes()[size_t(a.dim() - 1)] : 1;
  if (y.numel()) {
    const char *p = a.impl()->data(), *q = b.defined() ? b.impl()->data() : nullptr;
    char* to = y.impl()->data();
    const int64_t bytes = n * itemsize(x.dtype());
    const bool non_temporal = last && rows_bypass_caches(to, y.numel() / n, bytes);
    parallel_for(y.numel() / n, rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        row(p + r * bytes, q ? q + r * bytes : nullptr, to + r * bytes, n, non_temporal);
      if (non_temporal) finish_non_temporal();
    });
  }
  return last ? y : contiguous_values(transpose(y, d, -1));
}

/// Columns that lie side by side, `step` elements from row to row, and what a kernel writes for them.
struct Strip {
  const char* in[2];
  char* out;
  int64_t step, count, first;  // `first` is the number of the first column
  char* room;
};

/// The longest rows that are transposed to columns, by what is computed: with longer ones a row by itself is as fast
/// (rows of 2 to 100 elements, with AVX2).
enum class ShortRow : int64_t { softmax = 32, log_softmax = 48, sums = 96, softmax_backward = 7, loss_gradient = 40 };

/// A contiguous [outer, n, inner], whose columns lie side by side: copies of strips of them stay in the caches from
/// pass to pass. Strips of long columns leave L2 before they are narrower than 128 bytes, as memory is slow to give
/// less here and there (build/bin/bandwidth 'softmax(0)'; of 16 columns those of 32768 rows took 1.35 times as long).
/// Short rows are columns, too, once a strip of them is transposed: a row alone would fill a part of one vector
/// (log_softmax of [4096, 2] took 15 times as long by rows).
struct Columns {
  int64_t outer = 1, n = 1, inner = 1, item, strip = 0, room;
  bool turned = false;  // whether strips are transposed
  /// `operands` strips are kept at a time.
  Columns(const Tensor& x, int64_t d, int64_t operands = 1) : item(itemsize(x.dtype())) {
    constexpr int64_t kKeptBytes = 1 << 20, kTurnedBytes = 1 << 14, kFewest = 32, kMost = 512;
    const int64_t wide = x.dtype() == DType::float64 ? 8 : 4;
    for (int64_t i = 0; i < x.dim(); ++i) (i < d ? outer : i == d ? n : inner) *= x.size(i);
    if (inner == 1) inner = outer, outer = 1, turned = n > 1;  // rows, each a column once they are transposed
    strip = (turned ? kTurnedBytes : kKeptBytes) / (n * wide * operands) / kFewest * kFewest;
    strip = std::min(std::clamp(strip, kFewest, kMost), inner);
    room = strip * (row_kernels(x.dtype()).slots + 6 + n * operands) * wide;
  }
  /// Whether columns are read as they lie, or rows are transposed: rows of a few elements are better brought together,
  /// and so are columns that no cache keeps.
  static bool pay(const Tensor& x, int64_t d, ShortRow longest) {
    constexpr int64_t kFewest = 8, kLongest = 1 << 16;
    if (!x.is_contiguous() || x.dim() == 0 || x.numel() == 0) return false;
    int64_t inner = 1;
    for (int64_t i = d + 1; i < x.dim(); ++i) inner *= x.size(i);
    if (inner == 1) return x.size(d) <= int64_t(longest) && x.numel() / x.size(d) >= kFewest;
    return inner >= kFewest && x.size(d) <= kLongest;
  }
  /// Returns a tensor that is laid out for columns, which pay for few rows in any layout.
  static Tensor ready(const Tensor& x, int64_t d) {
    constexpr int64_t kFewRows = 32;
    return d < x.dim() && x.size(d) < kFewRows && !x.is_contiguous() ? contiguous_values(x) : x;
  }
  /// Calls f(strip) for the columns of one or two tensors and of what is written, if it has their shape.
  template <class F>
  void each_strip(const char* a, const char* b, char* out, F f) const {
    const int64_t strips = (inner + strip - 1) / strip;
    parallel_for(outer * strips, rows_per_piece(n * strip), [&](int64_t begin, int64_t end) {
      char* const space = static_cast<char*>(thread_scratch(Scratch::operand_a, size_t(room)));
      for (int64_t t = begin; t < end; ++t) {
        const int64_t c = t % strips * strip, count = std::min(strip, inner - c), first = t / strips * inner + c;
        if (turned) {
          turn({{a, b}, out, count, count, first, space}, f);
          continue;
        }
        const int64_t at = (t / strips * n * inner + c) * item;
        f(Strip{{a + at, b ? b + at : nullptr}, out ? out + at : nullptr, inner, count, first, space});
      }
    });
  }

 private:
  /// Calls f for rows, from `first` on, of tensors that `s` has the beginnings of.
  template <class F>
  void turn(Strip s, F f) const {
    const int64_t at = s.first * n * item, bytes = (s.count * n * item + kLine - 1) / kLine * kLine;
    char* const space = static_cast<char*>(thread_scratch(Scratch::operand_b, size_t(3 * bytes)));
    for (int k = 0; k < 2; ++k) {
      if (!s.in[k]) continue;
      char* const columns = space + k * bytes;
      transpose_matrix({s.in[k] + at, columns, n * item, s.count * item, s.count, n, item});
      s.in[k] = columns;
    }
    char* const to = s.out;
    if (to) s.out = space + 2 * bytes;
    f(s);
    if (to) transpose_matrix({s.out, to + at, s.count * item, n * item, n, s.count, item});
  }
};

template <bool log>
Tensor softmax_kernel(const Tensor& input, int64_t dim) {
  check_floating(input, log ? "log_softmax" : "softmax");
  const int64_t d = wrap_dim(dim, input.dim(), log ? "log_softmax" : "softmax");
  const Tensor x = Columns::ready(input, d);
  if (Columns::pay(x, d, log ? ShortRow::log_softmax : ShortRow::softmax)) {
    const Columns columns(x, d);
    Tensor y = result_tensor(x.sizes(), x.dtype(), x.device());
    const auto strip = row_kernels(x.dtype()).softmax_columns;
    char* const to = y.impl()->data();
    const bool non_temporal =
        !columns.turned && rows_bypass_caches(to, columns.outer * columns.n, columns.inner * columns.item);
    columns.each_strip(x.impl()->data(), nullptr, to, [&](const Strip& s) {
      strip(s.in[0], s.out, columns.n, s.step, s.count, log, non_temporal, s.room);
      if (non_temporal) finish_non_temporal();
    });
    return y;
  }
  auto f = row_kernels(x.dtype()).softmax;
  return along(
      x, {}, dim, log ? "log_softmax" : "softmax",
      [f](const char* a, const char*, char* y, int64_t n, bool non_temporal) { f(a, y, n, log, non_temporal); });
}

Tensor softmax_backward_kernel(const Tensor& of_output, const Tensor& result, int64_t dim, bool log) {
  check_floating(of_output, "_softmax_backward");
  const int64_t d = wrap_dim(dim, of_output.dim(), "_softmax_backward");
  const Tensor grad = Columns::ready(of_output, d), output = Columns::ready(result, d);
  if (Columns::pay(grad, d, ShortRow::softmax_backward) && output.is_contiguous() && grad.dtype() == output.dtype()) {
    const Columns columns(grad, d, 2);
    Tensor gx = result_tensor(grad.sizes(), grad.dtype(), grad.device());
    const auto strip = row_kernels(grad.dtype()).softmax_backward_columns;
    columns.each_strip(grad.impl()->data(), output.impl()->data(), gx.impl()->data(), [&](const Strip& s) {
      strip(s.in[0], s.in[1], s.out, columns.n, s.step, s.count, log, s.room);
    });
    return gx;
  }
  auto f = row_kernels(output.dtype())._softmax_backward;
  return along(grad, output, dim, "_softmax_backward",
               [f, log](const char* g, const char* y, char* gx, int64_t n, bool) { f(g, y, gx, n, log); });
}

double log_of(const RowKernels& kernels, double sum) {
  double r;
  kernels.logs(&sum, 1, &r);
  return r;
}

/// Writes the logarithms of the sums of exponentials along dimension d, 1 in size; the rows have no +inf.
template <class T>
Tensor logsumexp_along(const Tensor& any, int64_t d) {
  using C = compute_t<T>;
  const Tensor input = Columns::ready(any, d);
  const int64_t n = input.size(d);
  if (Columns::pay(input, d, ShortRow::sums)) {
    const Columns columns(input, d);
    Dims kept(input.sizes());
    kept[size_t(d)] = 1;
    Tensor y = empty_tensor(kept, input.dtype());
    const auto strip = row_kernels(input.dtype()).logsumexp_columns;
    T* const to = elements<T>(y);
    columns.each_strip(input.impl()->data(), nullptr, nullptr, [&](const Strip& s) {
      auto* const values = static_cast<double*>(thread_scratch(Scratch::output, sizeof(double) * size_t(s.count)));
      strip(s.in[0], columns.n, s.step, s.count, values, s.room);
      for (int64_t c = 0; c < s.count; ++c) to[s.first + c] = T(static_cast<C>(values[c]));
    });
    return y;
  }
  const bool last = d == input.dim() - 1;
  const Tensor x = contiguous_values(last ? input : transpose(input, d, -1));
  Dims sizes(x.sizes());
  sizes.back() = 1;
  Tensor y = empty_tensor(sizes, x.dtype());
  const auto row = row_kernels(x.dtype()).exp_sum;
  const char* const from = x.impl()->data();
  T* const to = elements<T>(y);
  parallel_for(y.numel(), rows_per_piece(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const ExpSum s = row(from + r * n * int64_t(sizeof(T)), n);
      to[r] = T(static_cast<C>(s.top + log_of(row_kernels(x.dtype()), s.sum)));
    }
  });
  return last ? y : contiguous_values(transpose(y, d, -1));
}

/// logsumexp along one dimension. Along several, and where there is +inf, which the row kernels make NaN of: the op's
/// own body.
Tensor logsumexp_kernel(const Tensor& input, IntList dim, bool keepdim) {
  if (dim.size() != 1 || !is_float(input.dtype()) || input.numel() == 0 || input.dim() == 0) {
    return ops::logsumexp.body()(input, dim, keepdim);
  }
  const int64_t d = wrap_dim(dim[0], input.dim(), "logsumexp");
  return visit<kFloats>(input.dtype(), [&]<class T>() {
    const Tensor y = logsumexp_along<T>(input, d);
    const T* const values = elements<T>(y);
    const auto is_nan = [](T v) { return static_cast<compute_t<T>>(v) != static_cast<compute_t<T>>(v); };
    if (std::any_of(values, values + y.numel(), is_nan)) return ops::logsumexp.body()(input, dim, keepdim);
    return keepdim ? y : squeeze(y, d);
  });
}

/// A reader of class numbers that checks them; it returns -1 for ignored rows.
class Targets {
 public:
  Targets(const Tensor& target, int64_t classes, int64_t ignore)
      : kept_(contiguous_values(target.to(DType::int64))), numbers_(elements<int64_t>(kept_)), ignore_(ignore) {
    for (int64_t i = 0; i < kept_.numel(); ++i) {
      const int64_t t = numbers_[i];
      VESTA_CHECK(t == ignore || uint64_t(t) < uint64_t(classes), index, "cross_entropy: Target ", t,
                  " is out of bounds (row ", i, "; classes are 0 to ", classes - 1, ").");
    }
  }
  int64_t operator[](int64_t i) const { return numbers_[i] == ignore_ ? -1 : numbers_[i]; }

 private:
  const Tensor kept_;
  const int64_t* const numbers_;
  const int64_t ignore_;
};

/// The weights of the classes in the dtype of statistics.
template <class C>
class ClassWeights {
 public:
  explicit ClassWeights(const Tensor& w)
      : kept_(w.defined() ? contiguous_values(w.to(dtype_of<C>)) : w),
        numbers_(kept_.defined() ? elements<C>(kept_) : nullptr) {}
  const char* bytes(int64_t c = 0) const { return reinterpret_cast<const char*>(numbers_ ? numbers_ + c : nullptr); }
  double operator[](int64_t c) const { return numbers_ ? double(numbers_[c]) : 1.0; }
  /// Returns the sum over `classes`.
  double sum(int64_t classes) const {
    return numbers_ ? row_kernels(dtype_of<C>).dot(bytes(), nullptr, 0, classes) : double(classes);
  }

 private:
  const Tensor kept_;
  const C* const numbers_;
};

/// The operands of cross-entropy of [N, C] or [N, C, inner], of T: rows of logits, or columns that lie side by side.
/// Both give the same bits.
template <class T>
struct Logits {
  using C = compute_t<T>;
  int64_t classes, count;  // rows, or columns
  bool moved;  // whether the classes of `x` are its last dimension, where they are not the input's
  Tensor x;
  bool by_columns;
  const T* values;
  const RowKernels& kernels = row_kernels(dtype_of<T>);
  Targets targets;
  ClassWeights<C> weights;
  double smoothing, total_weight;

  Logits(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore, double smooth,
         ShortRow longest)
      : classes(input.size(1)),
        count(target.numel()),
        moved(input.dim() == 3 && !stays(input)),
        x(contiguous_values(moved ? transpose(input, 1, 2) : input)),
        by_columns(Columns::pay(x, class_dim(), longest)),
        values(elements<T>(x)),
        targets(target, classes, ignore),
        weights(weight),
        smoothing(smooth),
        total_weight(smooth != 0 ? weights.sum(classes) : 0) {}
  /// Whether columns stay in the input's order. Pixels with channels last are rows already.
  static bool stays(const Tensor& input) {
    constexpr int64_t kFewClasses = 32;
    if (input.is_contiguous()) return Columns::pay(input, 1, ShortRow::sums);
    const bool few = input.size(1) < kFewClasses && input.size(2) >= 8 && input.numel() > 0;
    return few && !transpose(input, 1, 2).is_contiguous();
  }
  int64_t class_dim() const { return moved ? 2 : 1; }
  const T* row(int64_t i) const { return values + i * classes; }
  Columns columns() const { return Columns(x, class_dim()); }
  /// The loss of a row or column with class t, weights w and smoothing e (Szegedy et al. 2016), l its logsumexp:
  ///   (1 - e) * w[t] * (l - x[t]) + e / C * sum_j w[j] * (l - x[j])
  /// The largest logit is subtracted from x before the logarithm of the sum is, so that large logits cost no digits.
  double loss(int64_t t, double top, double log, double own, double dot) const {
    const double value = (1 - smoothing) * weights[t] * (top - own + log);
    return smoothing == 0 ? value : value + smoothing / double(classes) * (total_weight * log - dot);
  }

  void write_rows(C* losses, C* sums) const {
    parallel_for(count, rows_per_piece(classes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const char* const bytes = reinterpret_cast<const char*>(row(i));
        const ExpSum s = kernels.exp_sum(bytes, classes);
        const int64_t t = targets[i];
        const double dot = smoothing != 0 && t >= 0 ? kernels.dot(bytes, weights.bytes(), s.top, classes) : 0;
        losses[i] = t < 0 ? C(0) : C(loss(t, s.top, log_of(kernels, s.sum), double(row(i)[t]), dot));
        sums[2 * i] = C(s.top), sums[2 * i + 1] = C(s.sum);
      }
    });
  }
  void write_columns(C* losses, C* sums) const {
    const Columns all = columns();
    all.each_strip(x.impl()->data(), nullptr, nullptr, [&](const Strip& strip) {
      const int64_t n = strip.count, step = strip.step;
      double* const numbers = static_cast<double*>(thread_scratch(Scratch::output, sizeof(double) * size_t(4 * n)));
      const ColumnSums s{numbers, numbers + n, numbers + 2 * n, numbers + 3 * n};
      kernels.exp_sum_columns(strip.in[0], classes, step, n, weights.bytes(), smoothing != 0, s, strip.room);
      const T* const logits = reinterpret_cast<const T*>(strip.in[0]);
      for (int64_t c = 0; c < n; ++c) {
        const int64_t i = strip.first + c, t = targets[i], known = std::max<int64_t>(t, 0);
        const double own = double(logits[known * step + c]);
        const double value = loss(known, s.tops[c], s.logs[c], own, smoothing != 0 ? s.dots[c] : 0);
        losses[i] = t < 0 ? C(0) : C(value);
        sums[2 * i] = C(s.tops[c]), sums[2 * i + 1] = C(s.sums[c]);
      }
    });
  }

  /// The numbers of a gradient: scale * softmax - less * w, and `direct` less for the class.
  struct Slopes {
    double direct, less, scale;
  };
  Slopes slopes(int64_t t, double g, double sum) const {
    const double direct = g * (1 - smoothing) * weights[t], less = g * smoothing / double(classes);
    return {direct, less, (direct + less * total_weight) / sum};
  }

  void write_row_gradients(const C* g, const C* sums, T* gx) const {
    const RowKernels& one = row_kernels(dtype_of<C>);
    parallel_for(count, rows_per_piece(classes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* const to = gx + i * classes;
        const int64_t t = targets[i];
        if (t < 0) {
          std::fill_n(to, classes, T(C(0)));
          continue;
        }
        const double top = double(sums[2 * i]);
        const Slopes s = slopes(t, double(g[i]), double(sums[2 * i + 1]));
        kernels.exp_minus(reinterpret_cast<const char*>(row(i)), top, s.scale, s.less, weights.bytes(),
                          reinterpret_cast<char*>(to), classes);
        // The class's own element once more: it must not be rounded to 16 bits before the rest is subtracted.
        const C own = C(row(i)[t]);
        C most;
        one.exp_minus(reinterpret_cast<const char*>(&own), top, s.scale, s.less, weights.bytes(t),
                      reinterpret_cast<char*>(&most), 1);
        to[t] = T(most - C(s.direct));
      }
    });
  }
  void write_column_gradients(const C* g, const C* sums, T* gx) const {
    const Columns all = columns();
    all.each_strip(x.impl()->data(), nullptr, reinterpret_cast<char*>(gx), [&](const Strip& strip) {
      const int64_t n = strip.count;
      const size_t size = size_t(n) * (4 * sizeof(C) + sizeof(int64_t));
      int64_t* const numbers = static_cast<int64_t*>(thread_scratch(Scratch::output, size));
      C *const tops = reinterpret_cast<C*>(numbers + n), *const scales = tops + n, *const less = scales + n,
               *const direct = less + n;
      for (int64_t c = 0; c < n; ++c) {
        const int64_t i = strip.first + c, t = targets[i];
        const Slopes s = t < 0 ? Slopes{0, 0, 0} : slopes(t, double(g[i]), double(sums[2 * i + 1]));
        numbers[c] = t, tops[c] = sums[2 * i], scales[c] = C(s.scale), less[c] = C(s.less), direct[c] = C(s.direct);
      }
      const auto bytes = [](const C* p) { return reinterpret_cast<const char*>(p); };
      const ColumnSlopes s{numbers,     weights.bytes(), bytes(tops),   bytes(scales),
                           bytes(less), bytes(direct),   smoothing != 0};
      kernels.exp_minus_columns(strip.in[0], classes, strip.step, n, s, strip.out);
    });
  }
};

TensorPair cross_entropy_kernel(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore,
                                double smoothing, MaybeDType dtype) {
  const DType loss_dtype = check_cross_entropy(input, target, weight, smoothing, dtype);
  const DType wide = statistics_dtype(input.dtype());
  const Tensor loss = empty_tensor(target.sizes(), wide), exp_sums = empty_tensor(exp_sums_shape(input), wide);
  visit<kFloats>(input.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const Logits<T> logits(input, target, weight, ignore, smoothing, ShortRow::sums);
    if (logits.by_columns) logits.write_columns(elements<C>(loss), elements<C>(exp_sums));
    else logits.write_rows(elements<C>(loss), elements<C>(exp_sums));
  });
  return {loss.to(loss_dtype), exp_sums};
}

Tensor cross_entropy_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& target, MaybeTensor weight,
                                     const Tensor& exp_sums, MaybeTensor total, int64_t ignore, double smoothing) {
  check_cross_entropy_backward(grad, input, target, weight, exp_sums, smoothing);
  const DType wide = statistics_dtype(input.dtype());
  const Tensor rows = total.defined() ? div(grad, *total).to(grad.dtype()) : grad;
  const Tensor g = contiguous_values(rows.to(wide)), kept = contiguous_values(exp_sums);
  return visit<kFloats>(input.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const Logits<T> logits(input, target, weight, ignore, smoothing, ShortRow::loss_gradient);
    const Tensor gx = empty_tensor(logits.x.sizes(), input.dtype());
    if (logits.by_columns) logits.write_column_gradients(elements<C>(g), elements<C>(kept), elements<T>(gx));
    else logits.write_row_gradients(elements<C>(g), elements<C>(kept), elements<T>(gx));
    return logits.moved ? transpose(gx, 1, 2) : gx;
  });
}

}  // namespace

const RowKernels& row_kernels(DType d) {
  VESTA_CHECK(is_float(d), type, "expected a floating-point dtype, got ", d, ".");
  return rows[int(d)];
}

void register_softmax() {
  VESTA_ON_ISA(register_rows, rows);
  VESTA_ON_ISA(register_row_columns, rows);
  VESTA_ON_ISA(register_row_pixels, rows);
  constexpr auto cpu = DeviceType::cpu;
  ops::_softmax.set_kernel(cpu, softmax_kernel<false>);
  ops::_log_softmax.set_kernel(cpu, softmax_kernel<true>);
  ops::logsumexp.set_kernel(cpu, logsumexp_kernel);
  ops::_softmax_backward.set_kernel(cpu, softmax_backward_kernel);
  ops::_cross_entropy.set_kernel(cpu, cross_entropy_kernel);
  ops::_cross_entropy_backward.set_kernel(cpu, cross_entropy_backward_kernel);
}

}  // namespace vesta::cpu
