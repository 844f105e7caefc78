// Composites: every function here calls other ops only, and so has their gradients on every device.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <vesta/core/autograd_port.h>
#include <vesta/core/base/warning.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sparse.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

// ---- pointwise ----

Tensor div_Tensor_mode_composite(const Tensor& input, const Tensor& other, MaybeText rounding_mode, Out out) {
  if (!rounding_mode) return ops::div(input, other, out);
  if (*rounding_mode == "floor") return ops::floor_divide(input, other, out);
  VESTA_CHECK(*rounding_mode == "trunc", value,
              "div: expected rounding_mode to be one of None, 'trunc', or 'floor', got '", *rounding_mode, "'.");
  return ops::_trunc_divide(input, other, out);
}

namespace {

/// Returns a number that bounds a tensor, of an integer tensor brought into the range of its dtype. Raises where
/// nothing could satisfy it, and for one that a float dtype does not hold.
Tensor number_within(const Tensor& input, const Tensor& bound, bool lower) {
  const Scalar number = bound.item();
  VESTA_CHECK(!is_bool(input.dtype()) || !is_bool(number.dtype()), not_implemented,
              "clamp: expected a dtype other than bool, got bools and the number ", number.integer() != 0, ".");
  if (!number.is_complex()) check_range(number, input.dtype(), "clamp");
  if (number.dtype() != DType::int64 || !is_integral(input.dtype())) return bound;
  return visit<kIntegers>(input.dtype(), [&]<class T>() -> Tensor {
    const int64_t v = number.integer();
    if (std::in_range<T>(v)) return bound;
    VESTA_CHECK(lower == (v < 0), runtime, "clamp: ", lower ? "min" : "max", " value ", v,
                " is outside the representable range of ", input.dtype(), ".");
    return wrapped(Scalar(lower ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max()));
  });
}

/// Returns a bound within the range of the input's dtype; a number that is brought into it is kept in `limit`.
VESTA_INLINE const Tensor& bound_within(const Tensor& input, const Tensor& bound, bool lower, Tensor& limit) {
  if (!bound.defined() || !bound.impl()->wrapped_number) return bound;
  constexpr double kHeldByAll = 65504;  // by float16, the narrowest
  const bool held =
      bound.dtype() == DType::float64 && std::abs(*reinterpret_cast<const double*>(bound.impl()->data())) <= kHeldByAll;
  return held ? bound : (limit = number_within(input, bound, lower));
}

/// Returns whether a bound is a tensor, and it or the input has floats: equal values share the gradient then.
bool shares_gradient(const Tensor& input, const Tensor& bound) {
  return bound.defined() && !bound.impl()->wrapped_number && (is_float(input.dtype()) || is_float(bound.dtype()));
}

}  // namespace

Tensor clamp_min_composite(const Tensor& input, const Tensor& min, Out out) {
  Tensor limit;
  if (shares_gradient(input, min)) return named_step(ops::maximum(input, min, out), "ClampMinBackward1");
  return named_step(ops::_clamp_min(input, bound_within(input, min, true, limit), out), "ClampMinBackward0");
}

Tensor clamp_max_composite(const Tensor& input, const Tensor& max, Out out) {
  Tensor limit;
  if (shares_gradient(input, max)) return named_step(ops::minimum(input, max, out), "ClampMaxBackward1");
  return named_step(ops::_clamp_max(input, bound_within(input, max, false, limit), out), "ClampMaxBackward0");
}

Tensor clamp_composite(const Tensor& input, MaybeTensor min, MaybeTensor max, Out out) {
  VESTA_CHECK(min.defined() || max.defined(), value, "clamp: At least one of 'min' or 'max' must not be None.");
  Tensor lowest, highest;
  const Tensor &low = bound_within(input, min, true, lowest), &high = bound_within(input, max, false, highest);
  if (shares_gradient(input, low) || shares_gradient(input, high)) {
    if (!high.defined()) return named_step(ops::maximum(input, low, out), "ClampBackward0");
    if (!low.defined()) return named_step(ops::minimum(input, high, out), "ClampBackward0");
    return named_step(ops::_clamp_by_tensors(input, low, high, out), "ClampBackward0");
  }
  if (!high.defined()) return named_step(ops::_clamp_min(input, low, out), "ClampBackward1");
  if (!low.defined()) return named_step(ops::_clamp_max(input, high, out), "ClampBackward1");
  return ops::_clamp_between(input, low, high, out);
}

Tensor gelu_composite(const Tensor& input, Text approximate) {
  VESTA_CHECK(is_float(input.dtype()), not_implemented, "gelu: expected a floating-point dtype, got ", input.dtype(),
              ".");
  if (approximate == "tanh") return _gelu_tanh(input);
  VESTA_CHECK(approximate == "none", value, "gelu: expected approximate to be 'none' or 'tanh', got '", approximate,
              "'.");
  return _gelu_erf(input);
}

Tensor conj_composite(const Tensor& input) { return input.is_complex() ? conj_physical(input) : input; }

// ---- shape ----

Tensor reshape_composite(const Tensor& input, IntList shape) {
  if (input.is_contiguous()) return view(input, shape);
  Dims sizes = infer_size(shape, input.numel(), "reshape");
  if (view_strides(input.sizes(), input.strides(), sizes)) return view(input, sizes);
  return view(clone(input, "contiguous_format"), sizes);
}

Tensor flatten_composite(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  int64_t start = wrap_dim(start_dim, input.dim(), "flatten"), end = wrap_dim(end_dim, input.dim(), "flatten");
  VESTA_CHECK(start <= end, runtime, "flatten: start_dim cannot come after end_dim, got ", start_dim, " and ", end_dim,
              ".");
  if (input.dim() == 0) return reshape(input, 1);
  if (start == end) return input;
  Dims sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < input.dim(); ++d) {
    int64_t n = input.sizes()[size_t(d)];
    if (d < start || d > end) sizes.push_back(n);
    else joined *= n;
    if (d == end) sizes.push_back(joined);
  }
  return reshape(input, sizes);
}

Tensor t_composite(const Tensor& input) {
  VESTA_CHECK(input.dim() <= 2, runtime, "t: expected a tensor with <= 2 dimensions, but self is ", input.dim(), "D.");
  return named_step(transpose(input, 0, input.dim() < 2 ? 0 : 1), "TBackward0");
}

Tensor mT_composite(const Tensor& input) {
  if (input.dim() == 0 && follows_torch()) {
    warn("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.");
    return view(input, input.sizes());
  }
  VESTA_CHECK(input.dim() >= 2, runtime, "mT: only supported on matrices or batches of matrices. Got ", input.dim(),
              "-D tensor.");
  return transpose(input, -2, -1);
}

Tensor ravel_composite(const Tensor& input) { return reshape(contiguous(input), -1); }
Tensor view_as_composite(const Tensor& input, const Tensor& other) { return view(input, other.sizes()); }
Tensor expand_as_composite(const Tensor& input, const Tensor& other) { return expand(input, other.sizes()); }
Tensor reshape_as_composite(const Tensor& input, const Tensor& other) { return reshape(input, other.sizes()); }

Tensor contiguous_composite(const Tensor& input, Text memory_format) {
  if (memory_format == "preserve_format") return input;
  if (memory_format == "contiguous_format" ? input.is_contiguous() : lies_in(input, memory_format)) return input;
  return clone(input, memory_format);
}

Tensor narrow_composite(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
  VESTA_CHECK(input.dim() > 0, runtime, "narrow: cannot be applied to a 0-dim tensor.");
  VESTA_CHECK(length >= 0, runtime, "narrow: length must be non-negative, got ", length, ".");
  int64_t d = wrap_dim(dim, input.dim(), "narrow"), n = input.sizes()[size_t(d)];
  VESTA_CHECK(start >= -n && start <= n, index, "narrow: start out of range (expected to be in range of [", -n, ", ", n,
              "], but got ", start, ").");
  if (start < 0) start += n;
  VESTA_CHECK(length <= n - start, runtime, "narrow: start (", start, ") + length (", length,
              ") exceeds dimension size (", n, ").");
  return slice(input, d, start, start + length, 1);
}

Tensor narrow_Tensor_composite(const Tensor& input, int64_t dim, const Tensor& start, int64_t length) {
  VESTA_CHECK(start.dim() == 0 && is_integral(start.dtype()) && start.dtype() != DType::bool_, runtime,
              "narrow: start must be an 0-dim integral Tensor, got shape ", start.sizes(), " of ", start.dtype(),
              " (start).");
  return narrow(input, dim, start.item<int64_t>(), length);
}

TensorVector unbind_composite(const Tensor& input, int64_t dim) {
  VESTA_CHECK(input.dim() > 0, index, "unbind: Dimension specified as ", dim, " but tensor has no dimensions.");
  int64_t d = wrap_dim(dim, input.dim(), "unbind");
  TensorVector r;
  for (int64_t i = 0; i < input.sizes()[size_t(d)]; ++i) r.push_back(select(input, d, i));
  return named_step(std::move(r), "UnbindBackward0");
}

namespace {

/// Cuts dimension d into pieces of `size`, the last one smaller; an empty dimension gives one empty piece.
TensorVector pieces(const Tensor& input, int64_t d, int64_t size) {
  int64_t n = input.sizes()[size_t(d)];
  TensorVector r;
  if (size == 0 || n == 0) return {slice(input, d, 0, n, 1)};
  for (int64_t at = 0; at < n; at += std::min(size, n - at))
    r.push_back(slice(input, d, at, at + std::min(size, n - at), 1));
  return r;
}

}  // namespace

Tensor resolve_conj_composite(const Tensor& input) { return input; }
Tensor resolve_neg_composite(const Tensor& input) { return input; }

TensorVector split_with_sizes_composite(const Tensor& input, IntList split_sizes, int64_t dim) {
  VESTA_CHECK(input.dim() > 0, runtime, "split_with_sizes: expects at least a 1-dimensional tensor.");
  const int64_t d = wrap_dim(dim, input.dim(), "split_with_sizes");
  int64_t total = 0;
  for (int64_t n : split_sizes) {
    VESTA_CHECK(n >= 0, runtime, "split_with_sizes: expects split_sizes have only non-negative entries, but got ",
                "split_sizes=", IntSpan(split_sizes), ".");
    total += n;
  }
  VESTA_CHECK(total == input.size(d), runtime, "split_with_sizes: expects split_sizes to sum exactly to ",
              input.size(d), " (input tensor's size at dimension ", d, "), but got split_sizes=", IntSpan(split_sizes),
              ".");
  TensorVector r;
  int64_t at = 0;
  for (int64_t n : split_sizes) {
    r.push_back(narrow(input, d, at, n));
    at += n;
  }
  return named_step(std::move(r), "SplitWithSizesBackward0");
}

TensorVector split_composite(const Tensor& input, IntList split_size, int64_t dim) {
  VESTA_CHECK(input.dim() > 0, runtime, "split: expects at least a 1-dimensional tensor.");
  int64_t d = wrap_dim(dim, input.dim(), "split"), n = input.sizes()[size_t(d)];
  if (split_size.size() == 1) {
    int64_t size = split_size[0];
    VESTA_CHECK(size >= 0, runtime, "split: expects split_size be non-negative, but got split_size=", size, ".");
    VESTA_CHECK(size > 0 || n == 0, runtime,
                "split: split_size can only be 0 if dimension size is 0, but got dimension size of ", n, ".");
    return named_step(pieces(input, d, size), "SplitBackward0");
  }
  int64_t sum = 0;
  for (int64_t s : split_size) {
    VESTA_CHECK(s >= 0, runtime,
                "split: expects split_sizes have only non-negative entries, but got split_sizes=", IntSpan(split_size),
                ".");
    sum = checked_add(sum, s, "split");
  }
  VESTA_CHECK(sum == n, runtime, "split: expects split_sizes to sum exactly to ", n,
              " (input tensor's size at dimension ", d, "), but got split_sizes=", IntSpan(split_size), ".");
  TensorVector r;
  int64_t at = 0;
  for (int64_t s : split_size) {
    r.push_back(slice(input, d, at, at + s, 1));
    at += s;
  }
  return named_step(std::move(r), "SplitWithSizesBackward0");
}

TensorVector chunk_composite(const Tensor& input, int64_t chunks, int64_t dim) {
  VESTA_CHECK(input.dim() > 0, runtime, "chunk: expects at least a 1-dimensional tensor.");
  VESTA_CHECK(chunks > 0, runtime, "chunk: expects `chunks` to be greater than 0, got: ", chunks, ".");
  int64_t d = wrap_dim(dim, input.dim(), "chunk"), n = input.sizes()[size_t(d)];
  if (n == 0) {
    VESTA_CHECK(chunks <= 1 << 20, value, "chunk: expected at most 2^20 chunks of an empty dimension, got ", chunks,
                ".");
    return TensorVector(size_t(chunks), slice(input, d, 0, 0, 1));
  }
  return named_step(pieces(input, d, n / chunks + (n % chunks != 0)), "SplitBackward0");
}

Tensor stack_composite(TensorList tensors, int64_t dim) {
  VESTA_CHECK(!tensors.empty(), runtime, "stack: expects a non-empty list of tensors.");
  TensorVector list;
  for (size_t i = 0; i < tensors.size(); ++i) {
    VESTA_CHECK(std::ranges::equal(tensors[i].sizes(), tensors[0].sizes()), runtime,
                "stack: expects each tensor to be equal size, but got ", tensors[0].sizes(), " at entry 0 and ",
                tensors[i].sizes(), " at entry ", i, ".");
    VESTA_CHECK(tensors[i].device() == tensors[0].device(), device, "stack: expected all tensors on one device, got ",
                tensors[0].device(), " at entry 0 and ", tensors[i].device(), " at entry ", i,
                ". Move one with .to().");
    list.push_back(unsqueeze(tensors[i], dim));
  }
  const int64_t d = wrap_dim(dim, tensors[0].dim() + 1, "stack");
  if (d < tensors[0].dim() && tensors[0].numel() && std::ranges::all_of(tensors, suggests_channels_last)) {
    Dims sizes(tensors[0].sizes());  // side by side, channels last
    sizes.insert(size_t(d), int64_t(tensors.size()));
    return named_step(view(cat(tensors, d), sizes), "StackBackward0");
  }
  return named_step(cat(list, d), "StackBackward0");
}

Tensor sum_to_size_composite(const Tensor& input, IntList size) {
  const int64_t lead = input.dim() - int64_t(size.size());
  bool expandable = lead >= 0;
  Dims dims;
  for (int64_t d = 0; d < input.dim() && expandable; ++d) {
    int64_t have = input.sizes()[size_t(d)];
    int64_t want = d < lead ? 1 : size[size_t(d - lead)];
    expandable = d < lead || want == have || want == 1;
    if (d < lead || (want == 1 && have != 1)) dims.push_back(d);
  }
  VESTA_CHECK(expandable, runtime, "sum_to_size: size ", IntSpan(size), " is not expandable to size ", input.sizes(),
              ".");
  if (size.size() == 0) return sum(input);  // of bools a number, even where there is nothing to add
  if (dims.empty()) return input;
  Tensor r = sum(input, MaybeDims(dims), true);
  return lead > 0 ? view(r, size) : r;
}

// ---- moments and norms ----

namespace {

/// Returns x where a sum of many of its values is safe: 16-bit floats as float32.
Tensor widened(const Tensor& x) {
  return x.dtype() == DType::float16 || x.dtype() == DType::bfloat16 ? x.to(DType::float32) : x;
}
/// Returns the dtype of |x|.
DType real_dtype(DType d) {
  return d == DType::complex64 ? DType::float32 : d == DType::complex128 ? DType::float64 : d;
}

/// Sums a >= 0 to the power of p. The gradient at 0 is 0 where the slope would be infinite.
Tensor sum_of_powers(const Tensor& a, double p, const MaybeDims& dim, bool keepdim) {
  if (p >= 1) return sum(pow(a, wrapped(p)), dim, keepdim);
  Tensor zero = eq(a, 0);
  Tensor powers = pow(where(zero, wrapped(1.0), a), wrapped(p));
  return sum(where(zero, wrapped(p < 0 ? std::numeric_limits<double>::infinity() : 0.0), powers), dim, keepdim);
}

/// The variance and the mean, in no fewer digits than float32 has, the variance in a wider range where there is one.
TensorPair variance(const Tensor& input, const MaybeDims& dim, MaybeScalar correction, bool keepdim, const char* op) {
  check_floating_or_complex(input, op);
  const auto [squares, center] = _moments(input, dim, keepdim);
  const double freedom = double(reduce_shape(input, dim, keepdim, op).count) - correction.value_or(1).to<double>(op);
  Tensor r = div(squares, wrapped(std::max(0.0, freedom)));
  if (freedom < 0 && dim && input.dim() > 0) {  // as in PyTorch, the gradient divides by what is below 0
    const Tensor slope = div(squares, wrapped(freedom));
    r = add(slope, sub(r, slope).detach());
  }
  return {r, center};
}

}  // namespace

TensorPair _moments_composite(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  const Tensor x = widened(input), center = mean(x, dim, true), from_mean = sub(x, center);
  const Tensor squares = _sum_of_squares(x.is_complex() ? abs(from_mean) : from_mean, dim, keepdim);
  return {squares, reshape(center, squares.sizes())};
}

Tensor _sum_of_squares_composite(const Tensor& input, const MaybeDims& dim, bool keepdim) {
  return sum(square(widened(input)), dim, keepdim);
}

Tensor var_correction_composite(const Tensor& input, const MaybeDims& dim, MaybeScalar correction, bool keepdim) {
  return named_step(std::get<0>(variance(input, dim, correction, keepdim, "var")).to(real_dtype(input.dtype())),
                    "VarBackward0");
}

Tensor std_correction_composite(const Tensor& input, const MaybeDims& dim, MaybeScalar correction, bool keepdim) {
  return named_step(
      _root(std::get<0>(variance(input, dim, correction, keepdim, "std")), 0.5).to(real_dtype(input.dtype())),
      "StdBackward0");
}

TensorPair var_mean_correction_composite(const Tensor& input, const MaybeDims& dim, MaybeScalar correction,
                                         bool keepdim) {
  const auto [squares, center] = variance(input, dim, correction, keepdim, "var_mean");
  return named_step(TensorPair(squares.to(real_dtype(input.dtype())), center.to(input.dtype())), "VarMeanBackward0");
}
TensorPair std_mean_correction_composite(const Tensor& input, const MaybeDims& dim, MaybeScalar correction,
                                         bool keepdim) {
  const auto [squares, center] = variance(input, dim, correction, keepdim, "std_mean");
  return named_step(TensorPair(_root(squares, 0.5).to(real_dtype(input.dtype())), center.to(input.dtype())),
                    "StdMeanBackward0");
}

Tensor logsumexp_composite(const Tensor& input, IntList over, bool keepdim) {
  const MaybeDims dim{IntSpan(over)};
  const Tensor x = is_differentiable(input.dtype()) ? input : input.to(default_dtype());
  if (!x.is_complex()) check_floating(x, "logsumexp");
  const Tensor wide = widened(x);
  if (reduce_shape(wide, dim, true, "logsumexp").count == 0) return log(sum(exp(wide), dim, keepdim)).to(x.dtype());
  Tensor top;
  {
    NoGrad off;  // the largest value is subtracted and added again: its gradient is 0
    top = amax(wide.is_complex() ? real(wide) : wide, dim, true);
    top = where(isfinite(top), top, wrapped(0.0));
  }
  const Tensor r = add(log(sum(exp(sub(wide, top)), dim, true)), top);
  if (keepdim) return r.to(x.dtype());
  return reshape(r, sum(top, dim, false).sizes()).to(x.dtype());
}

// A large result is rounded, which puts one factor on all of exp(x - result): they are divided by their sum, which
// should be 1. Where all is -inf, or something is inf, the slope is not a number.
Tensor _logsumexp_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& result, IntList dim) {
  const DType wide = compute_type(grad.dtype());
  const Tensor y = result.to(wide), parts = exp(sub(input.to(wide), y));
  if (y.is_complex()) return mul(grad, conj(parts));
  const Tensor total = where(isfinite(y), sum(parts, MaybeDims{IntSpan(dim)}, true), wrapped(1.0));
  return mul(div(grad.to(wide), total), parts);
}

// The product of the others: y / x where x is not zero; at the only zero of a line, the product of the rest; at one of
// several zeros, zero. In a line with a zero beside NaN or infinities, every other product is 0 or NaN: NaN where one
// of those is among its factors.
Tensor _prod_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  const Tensor zero = eq(input, 0), rest = where(zero, wrapped(1.0), input);
  const Tensor zeros_of_line = sum(zero, MaybeDims(dim), true), is_one = eq(zeros_of_line, 1);
  Tensor ordinary = div(mul(grad, conj(result)), conj(rest));  // 0 in a line that has a zero
  Tensor at_zero = where(is_one, mul(grad, conj(prod(rest, dim, true))), wrapped(0.0));
  // The host does not wait for a device to learn whether there is such a line.
  const bool on_host = result.device().type() == DeviceType::cpu;
  if (has_values(result) && (!on_host || any(isnan(result)).item<bool>())) {
    const Tensor wild = logical_not(isfinite(input)).to(DType::int64);
    const Tensor has_wild = gt(sub(sum(wild, MaybeDims(dim), true), wild), 0);  // among the others
    const Tensor product =
        where(has_wild, wrapped(std::numeric_limits<double>::quiet_NaN()), wrapped(0.0)).to(grad.dtype());
    ordinary = where(gt(zeros_of_line, 0), mul(grad, product), ordinary);
    at_zero = where(gt(zeros_of_line, 1), mul(grad, product), at_zero);
  }
  return where(zero, at_zero, ordinary);
}

// Element i has a part in the products from i on: its gradient is the sum of g_j y_j / x_i over j >= i. Up to the first
// zero of a line that holds; at the first zero, the products without it take y's place; behind it all products are 0.
Tensor _cumprod_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  const Tensor zero = eq(input, 0), before = cumsum(zero.to(DType::int64), dim);
  const Tensor clean = eq(before, 0), first = logical_and(zero, eq(before, 1));
  const Tensor products = where(clean, mul(grad, conj(result)), wrapped(0.0));  // behind a zero NaN is no part of them
  const Tensor ordinary = div(_reverse_cumsum(products, dim), conj(where(clean, input, wrapped(1.0))));
  const Tensor others = cumprod(where(first, wrapped(1.0), input), dim);
  const Tensor at_zero = _reverse_cumsum(where(eq(before, 1), mul(grad, conj(others)), wrapped(0.0)), dim);
  return where(clean, ordinary, where(first, at_zero, wrapped(0.0)));
}

Tensor _reverse_cumsum_composite(const Tensor& input, int64_t dim) {
  return input.dim() == 0 ? cumsum(input, dim) : flip(cumsum(flip(input, dim), dim), dim);
}

TensorPair aminmax_composite(const Tensor& input, MaybeInt dim, bool keepdim) {
  check_real(input, "aminmax");
  const MaybeDims dims = dim ? MaybeDims(*dim) : MaybeDims();
  VESTA_CHECK(dim || input.numel() > 0, runtime,
              "aminmax: cannot compute aminmax over an empty dimension as the operation has no identity.");
  return named_step(TensorPair(amin(input, dims, keepdim), amax(input, dims, keepdim)), "AminmaxBackward0");
}

Tensor count_nonzero_dim_IntList_composite(const Tensor& input, IntList dim) {
  const Tensor counted = input.dtype() == DType::bool_ ? input : ne(input, 0);
  return dim.empty() ? sum(counted) : sum(counted, MaybeDims(IntSpan(dim)));
}

Tensor nansum_composite(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  check_real(input, "nansum");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return named_step(
      sum(is_float(input.dtype()) ? _nan_to_num(input, 0, infinity, -infinity) : input, dim, keepdim, dtype),
      "NansumBackward0");
}

Tensor nanmean_composite(const Tensor& input, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  check_floating_or_complex(input, "nanmean");
  check_real(input, "nanmean");
  const Tensor counted = logical_not(isnan(input));
  return div(nansum(input, dim, keepdim, dtype), sum(counted, dim, keepdim));
}

Tensor diff_composite(const Tensor& input, int64_t n, int64_t dim, MaybeTensor prepend, MaybeTensor append, Out out) {
  VESTA_CHECK(input.dim() > 0, runtime, "diff: expects input to be at least one-dimensional.");
  VESTA_CHECK(n >= 0, runtime, "diff: order must be non-negative but got ", n, ".");
  const int64_t d = wrap_dim(dim, input.dim(), "diff");
  if (n == 0) return write_result(out, clone(input), "diff");
  TensorVector parts;
  for (const Tensor& t : {*prepend, input, *append}) {
    if (!t.defined()) continue;
    VESTA_CHECK(t.dim() == input.dim(), runtime, "diff: expects prepend or append to have ", input.dim(),
                " dimensions as input, got shape ", t.sizes(), ".");
    parts.push_back(t);
  }
  Tensor r = parts.size() > 1 ? cat(parts, d) : input;
  for (int64_t i = std::min(n, r.size(d)); i > 0; --i) {
    const int64_t last = std::max<int64_t>(r.size(d) - 1, 0);
    const Tensor after = slice(r, d, 1, {}, 1), before = slice(r, d, 0, last, 1);
    const Out to = i == 1 ? out : Out{};
    r = r.dtype() == DType::bool_ ? ops::logical_xor(after, before, to) : ops::sub(after, before, 1, to);
    if (i == 1) return r;
  }
  return write_result(out, r.is_same(input) ? clone(input) : r, "diff");
}

Tensor norm_composite(const Tensor& input, double p, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  check_floating_or_complex(input, "norm");
  const bool holds = !dtype || (promote(input.dtype(), *dtype) == *dtype && is_complex(*dtype) == input.is_complex());
  VESTA_CHECK(holds, runtime, "norm: expected a dtype that holds ", input.dtype(), " without narrowing, got ",
              dtype.value_or(DType::float32), " (dtype).");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int64_t count = reduce_shape(input, dim, keepdim, "norm").count;
  VESTA_CHECK(count > 0 || (p >= 0 && p != infinity), runtime, "norm: expected elements for p = ", p, ", got shape ",
              input.sizes(), " (input), which has no such norm.");
  const Tensor given = dtype ? input.to(*dtype) : input;
  const bool real_squares = p == 2 && !given.is_complex();
  Tensor r, a = real_squares ? given : abs(widened(given));
  if (p == 2) r = _root(_sum_of_squares(a, dim, keepdim), 0.5);
  else if (p == 1) r = sum(a, dim, keepdim);
  else if (p == 0) r = sum(where(isnan(a), wrapped(1.0), sign(a)), dim, keepdim);
  else if (p == infinity) r = amax(a, dim, keepdim);
  else if (p == -infinity) r = amin(a, dim, keepdim);
  else if (p > 0)
    r = p > 1 ? _root(sum_of_powers(a, p, dim, keepdim), 1 / p)
              : pow(sum_of_powers(a, p, dim, keepdim), wrapped(1 / p));
  else r = pow(sum_of_powers(a, p, dim, keepdim), wrapped(1 / p));
  return r.to(real_dtype(dtype.value_or(input.dtype())));
}

Tensor max_composite(const Tensor& input) {
  VESTA_CHECK(input.numel() > 0, runtime,
              "max: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
              "'dim' argument.");
  return named_step(amax(input), "MaxBackward1");
}
Tensor min_composite(const Tensor& input) {
  VESTA_CHECK(input.numel() > 0, runtime,
              "min: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
              "'dim' argument.");
  return named_step(amin(input), "MinBackward1");
}
Tensor max_other_composite(const Tensor& input, const Tensor& other, Out out) {
  return ops::maximum(input, other, out);
}
Tensor min_other_composite(const Tensor& input, const Tensor& other, Out out) {
  return ops::minimum(input, other, out);
}

// ---- masks and indices ----

namespace {

/// Makes masked_fill's value one of the tensor's dtype; a number must fit it.
Tensor fill_value_of(const Tensor& input, const Tensor& mask, const Tensor& value, const char* op) {
  VESTA_CHECK(mask.dtype() == DType::bool_, runtime, op, ": expected a bool mask, got ", mask.dtype(), " (mask).");
  VESTA_CHECK(value.dim() == 0, runtime, op, ": expected a 0-dimensional value tensor, got one with ", value.dim(),
              " dimension(s) (value).");
  VESTA_CHECK(!value.is_complex() || input.is_complex(), runtime, op, ": value cannot be converted to type ",
              input.dtype(), " without overflow: it is complex.");
  if (value.impl()->wrapped_number) {
    Tensor r = empty_tensor({}, input.dtype());
    fill_values(r, value.item(), op);
    return r;
  }
  check_held(value, input.dtype(), op);
  return value.to(input.dtype());
}

}  // namespace

Tensor masked_fill_composite(const Tensor& input, const Tensor& mask, const Tensor& value, Out out) {
  const char* const op = out.kind == Out::inplace ? "masked_fill_" : "masked_fill";
  const Tensor element = fill_value_of(input, mask, value, op);
  const bool recorded = layer_state.grad_enabled && (input.requires_grad() || element.requires_grad());
  if (out.kind == Out::inplace &&
      std::ranges::equal(IntSpan(broadcast_shapes(input.sizes(), mask.sizes(), op)), input.sizes()) &&
      may_overwrite(input, recorded, op)) {
    constexpr double params[kMaxParams] = {};
    return pointwise_as(op, ops::where.info, params, Out{&input, Out::given}, mask, element, input);
  }
  // A gradient saves nothing of the operands, but whose history it continues must not be the result itself.
  const Tensor before = recorded && out.kind == Out::inplace ? clone(input) : input;
  const Tensor filled =
      named_step(contiguous(where(mask, element, before)), "MaskedFillBackward0");  // as PyTorch has it
  return out.kind == Out::fresh ? filled : write_result(out, filled, op);
}

Tensor masked_select_composite(const Tensor& input, const Tensor& mask) {
  VESTA_CHECK(mask.dtype() == DType::bool_, runtime, "masked_select: expected a bool mask, got ", mask.dtype(),
              " (mask).");
  Dims shape = broadcast_shapes(input.sizes(), mask.sizes(), "masked_select");
  if (shape.empty()) return _index(view(input, 1), {view(mask, 1)});
  return _index(expand(input, shape), {expand(mask, shape)});
}

Tensor index_add_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  return index_add_(clone(input, "contiguous_format"), dim, index, source, alpha);
}

Tensor index_put_composite(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
  return index_put_(clone(input), indices, values, accumulate);
}
Tensor scatter_add_composite(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_add_(clone(input, "contiguous_format"), dim, index, src);
}

TensorOrTensors _nonzero(const Tensor& input, bool as_tuple) {
  if (!as_tuple) return nonzero(input);
  return unbind(nonzero(input.dim() == 0 ? view(input, 1) : input), 1);
}
TensorVector where_condition_composite(const Tensor& condition) {
  return std::get<TensorVector>(_nonzero(condition, true));
}

// ---- closeness ----

bool equal_composite(const Tensor& input, const Tensor& other) {
  return std::ranges::equal(input.sizes(), other.sizes()) && all(eq(input, other)).item<bool>();
}

Tensor isclose_composite(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan) {
  VESTA_CHECK(input.dtype() == other.dtype(), runtime, "isclose: expected one dtype, got ", input.dtype(), " and ",
              other.dtype(), ". Convert one with .to().");
  VESTA_CHECK(rtol >= 0 && atol >= 0, runtime, "isclose: expected rtol >= 0 and atol >= 0, got ", rtol, " and ", atol,
              ".");
  NoGrad off;
  if (input.dtype() == DType::float32 || input.dtype() == DType::float64) {
    return _isclose(input, other, rtol, atol, equal_nan);
  }
  Tensor close = eq(input, other);
  const bool fractions = is_differentiable(input.dtype());
  if (equal_nan && fractions) close = logical_or(close, logical_and(isnan(input), isnan(other)));
  if (input.dtype() == DType::bool_ || (rtol == 0 && atol == 0)) return close;
  const Tensor a = fractions ? input : input.to(DType::float64), b = other.to(a.dtype());
  const Tensor allowed = add(mul(abs(b), rtol), atol);
  const auto finite = [](const Tensor& x) { return eq(abs(sub(x, x)), 0); };  // infinite tolerances say nothing
  const Tensor near = logical_and(le(abs(sub(a, b)), allowed), logical_and(finite(a), finite(b)));
  return logical_or(close, near);
}

bool allclose_composite(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return all(isclose(input, other, rtol, atol, equal_nan)).item<bool>();
}

// ---- values ----

Tensor fill_Tensor__composite(const Tensor& input, const Tensor& value) {
  VESTA_CHECK(value.dim() == 0, runtime, "fill_: fill_ only supports 0-dimension value tensor but got tensor with ",
              value.dim(), " dimensions.");
  // A number of the host that nothing is recorded of is checked against the range of an integer dtype.
  const bool plain = value.device().type() == DeviceType::cpu && !(layer_state.grad_enabled && value.requires_grad());
  return plain ? fill_(input, as_element(value.item(), input.dtype())) : copy_(input, value);
}

Tensor zero__composite(const Tensor& input) { return named_step(fill_(input, 0), "ZeroBackward0"); }

namespace {

/// Checks the sizes of a factory that is made of others, so that the error names it.
IntList checked(IntList size, DType dtype, const char* op) {
  checked_mul(numel_of(size, op), itemsize(dtype), op);
  return size;
}

}  // namespace

Tensor zeros_composite(IntList size, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return full(checked(size, d, "zeros"), 0, d, device);
}
Tensor ones_composite(IntList size, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return full(checked(size, d, "ones"), 1, d, device);
}
Tensor rand_composite(IntList size, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return uniform_(empty(checked(size, d, "rand"), d, device), 0, 1, generator);
}
Tensor randn_composite(IntList size, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return normal_(empty(checked(size, d, "randn"), d, device), 0, 1, generator);
}
Tensor bernoulli_Tensor__composite(const Tensor& input, const Tensor& p, Generator* generator) {
  return copy_(input, bernoulli(expand(p, input.sizes()), generator));
}
Tensor bernoulli_p_composite(const Tensor& input, double p, Generator* generator) {
  return bernoulli_(empty_like(input), p, generator);
}
Tensor randint_low_composite(int64_t low, int64_t high, IntList size, Generator* generator, MaybeDType dtype,
                             MaybeDevice device) {
  DType d = dtype.value_or(DType::int64);
  VESTA_CHECK(low < high, value, "randint: expected low < high, got low=", low, " and high=", high, ".");
  return random_(empty(checked(size, d, "randint"), d, device), low, high, generator);
}

namespace {

/// Returns a sparse tensor of the sizes of another, without elements.
Tensor sparse_zeros(const Tensor& like, MaybeDType dtype, MaybeDevice device) {
  return with_no_elements(sparse_parts(like, "zeros_like"), dtype.value_or(like.dtype()),
                          device.value_or(like.device()), like.sizes());
}

}  // namespace

Tensor empty_like_composite(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  if (input.is_sparse()) return sparse_zeros(input, dtype, device);
  return empty_preserving(input, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
Tensor full_like_composite(const Tensor& input, Scalar fill_value, MaybeDType dtype, MaybeDevice device) {
  return fill_(empty_like(input, dtype, device), fill_value);
}
Tensor zeros_like_composite(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  if (input.is_sparse()) return sparse_zeros(input, dtype, device);
  return full_like(input, 0, dtype, device);
}
Tensor ones_like_composite(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  return full_like(input, 1, dtype, device);
}
Tensor rand_like_composite(const Tensor& input, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  return uniform_(empty_like(input, dtype, device), 0, 1, generator);
}
Tensor randn_like_composite(const Tensor& input, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  return normal_(empty_like(input, dtype, device), 0, 1, generator);
}

Tensor new_empty_composite(const Tensor& input, IntList size, MaybeDType dtype, MaybeDevice device) {
  return empty(size, dtype.value_or(input.dtype()), device.value_or(input.device()));
}

namespace {

/// Makes a tensor of these strides: its storage ends with its last element.
Tensor strided(IntList size, IntList stride, DType dtype, MaybeDevice device, const char* op) {
  VESTA_CHECK(size.size() == stride.size(), runtime, op, ": dimensionality of sizes (", size.size(),
              ") must match dimensionality of strides (", stride.size(), ").");
  int64_t count = numel_of(size, op) > 0 ? 1 : 0;
  for (size_t d = 0; d < size.size() && count > 0; ++d) {
    VESTA_CHECK(stride[d] >= 0, runtime, op, ": expected strides >= 0, got ", IntSpan(stride), ".");
    count = checked_add(count, checked_mul(size[d] - 1, stride[d], op), op);
  }
  return as_strided(empty({count}, dtype, device), size, stride);
}

}  // namespace

Tensor empty_strided_composite(IntList size, IntList stride, MaybeDType dtype, MaybeDevice device) {
  return strided(size, stride, dtype.value_or(default_dtype()), device, "empty_strided");
}
Tensor new_empty_strided_composite(const Tensor& input, IntList size, IntList stride, MaybeDType dtype,
                                   MaybeDevice device) {
  return strided(size, stride, dtype.value_or(input.dtype()), device.value_or(input.device()), "new_empty_strided");
}
Tensor scalar_tensor_composite(Scalar s, MaybeDType dtype, MaybeDevice device) {
  const DType d = dtype.value_or(s.is_complex() ? complex_type(default_dtype()) : default_dtype());
  return full(IntList(), itemsize(d) == 2 ? as_element(s, d) : s, d, device);
}
Tensor logspace_composite(Scalar start, Scalar end, int64_t steps, double base, MaybeDType dtype, MaybeDevice device) {
  VESTA_CHECK(steps >= 0, runtime, "logspace: number of steps must be non-negative, got ", steps, ".");
  const bool complex = start.is_complex() || end.is_complex();
  const DType d = dtype.value_or(complex ? complex_type(default_dtype()) : default_dtype());
  VESTA_CHECK(d != DType::bool_, not_implemented, "logspace: expected a dtype of numbers, got bool (dtype).");
  if (is_integral(d)) {  // as PyTorch has it: both ends are integers then
    start = std::trunc(start.to<double>("logspace")), end = std::trunc(end.to<double>("logspace"));
  }
  const DType wide = is_complex(d) ? DType::complex128 : DType::float64;
  return pow(wrapped(base), linspace(start, end, steps, wide, device)).to(d);
}
Tensor new_full_composite(const Tensor& input, IntList size, Scalar fill_value, MaybeDType dtype, MaybeDevice device) {
  return full(size, fill_value, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
Tensor new_zeros_composite(const Tensor& input, IntList size, MaybeDType dtype, MaybeDevice device) {
  return new_full(input, size, 0, dtype, device);
}
Tensor new_ones_composite(const Tensor& input, IntList size, MaybeDType dtype, MaybeDevice device) {
  return new_full(input, size, 1, dtype, device);
}

}  // namespace vesta
