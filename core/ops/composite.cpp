// Composites: every function here calls other ops only, and so has their gradients on every device.
#include <vesta/core/ops/composite.h>

#include <algorithm>
#include <limits>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/one_device.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/reduce.h>

namespace vesta {

// ---- pointwise ----

Tensor div(const Tensor& input, const Tensor& other, MaybeText rounding_mode) {
  if (!rounding_mode) return true_divide(input, other);
  if (*rounding_mode == "floor") return floor_divide(input, other);
  VESTA_CHECK(*rounding_mode == "trunc", value,
              "div: expected rounding_mode to be one of None, 'trunc', or 'floor', got '", *rounding_mode, "'.");
  return trunc_divide(input, other);
}

namespace {

/// Brings a number that bounds an integer tensor into the range of its dtype; raises where nothing could satisfy it.
MaybeTensor bound_within(const Tensor& input, const MaybeTensor& bound, bool lower) {
  if (!bound.defined() || !bound.impl()->wrapped_number || bound.dtype() != DType::int64 ||
      !is_integral(input.dtype())) {
    return bound;
  }
  int64_t v = bound.item().integer();
  return visit<kIntegers>(input.dtype(), [&]<class T>() -> Tensor {
    int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    if (v >= low && v <= high) return bound;
    VESTA_CHECK(lower ? v < low : v > high, runtime, "clamp: ", lower ? "min" : "max", " value ", v,
                " is outside the representable range of ", input.dtype(), ".");
    return wrapped(lower ? low : high);
  });
}

}  // namespace

Tensor clamp(const Tensor& input, const MaybeTensor& min, const MaybeTensor& max) {
  check_defined(input, "clamp", "input");
  VESTA_CHECK(min.defined() || max.defined(), value, "clamp: At least one of 'min' or 'max' must not be None.");
  check_one_device("clamp", {{"input", input}, {"min", min}, {"max", max}});
  Tensor low = bound_within(input, min, true), high = bound_within(input, max, false);
  const auto is_tensor = [](const Tensor& bound) { return bound.defined() && !bound.impl()->wrapped_number; };
  if (is_float(input.dtype()) && (is_tensor(low) || is_tensor(high))) {  // equal values share the gradient
    Tensor r = low.defined() ? maximum(input, low) : input;
    return high.defined() ? minimum(r, high) : r;
  }
  if (!high.defined()) return clamp_min(input, low);
  if (!low.defined()) return clamp_max(input, high);
  return clamp_between(input, low, high);
}

Tensor gelu(const Tensor& input, Text approximate) {
  check_defined(input, "gelu", "input");
  VESTA_CHECK(is_float(input.dtype()), not_implemented, "gelu: expected a floating-point dtype, got ", input.dtype(),
              ".");
  if (approximate == "tanh") return gelu_tanh(input);
  VESTA_CHECK(approximate == "none", value, "gelu: expected approximate to be 'none' or 'tanh', got '", approximate,
              "'.");
  return gelu_erf(input);
}

Tensor conj(const Tensor& input) {
  check_defined(input, "conj", "input");
  return input.is_complex() ? conj_physical(input) : input;
}

// ---- shape ----

Tensor reshape(const Tensor& input, IntList shape) {
  check_defined(input, "reshape", "input");
  if (input.is_contiguous()) return view(input, shape);
  Dims sizes = infer_size(shape, input.numel(), "reshape");
  if (view_strides(input.sizes(), input.strides(), sizes)) return view(input, sizes);
  return view(clone(input, "contiguous_format"), sizes);
}

Tensor flatten(const Tensor& input, int64_t start_dim, int64_t end_dim) {
  check_defined(input, "flatten", "input");
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

Tensor t(const Tensor& input) {
  check_defined(input, "t", "input");
  VESTA_CHECK(input.dim() <= 2, runtime, "t: expected a tensor with <= 2 dimensions, but self is ", input.dim(), "D.");
  return transpose(input, 0, input.dim() < 2 ? 0 : 1);
}

Tensor mT(const Tensor& input) {
  check_defined(input, "mT", "input");
  VESTA_CHECK(input.dim() >= 2, runtime, "mT: only supported on matrices or batches of matrices. Got ", input.dim(),
              "-D tensor.");
  return transpose(input, -2, -1);
}

Tensor contiguous(const Tensor& input) {
  check_defined(input, "contiguous", "input");
  return input.is_contiguous() ? input : clone(input, "contiguous_format");
}

Tensor narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
  check_defined(input, "narrow", "input");
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

TensorVector unbind(const Tensor& input, int64_t dim) {
  check_defined(input, "unbind", "input");
  VESTA_CHECK(input.dim() > 0, runtime, "unbind: Dimension specified as ", dim, " but tensor has no dimensions.");
  int64_t d = wrap_dim(dim, input.dim(), "unbind");
  TensorVector r;
  for (int64_t i = 0; i < input.sizes()[size_t(d)]; ++i) r.push_back(select(input, d, i));
  return r;
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

TensorVector split(const Tensor& input, IntList split_size, int64_t dim) {
  check_defined(input, "split", "input");
  VESTA_CHECK(input.dim() > 0, runtime, "split: expects at least a 1-dimensional tensor.");
  int64_t d = wrap_dim(dim, input.dim(), "split"), n = input.sizes()[size_t(d)];
  if (split_size.size() == 1) {
    int64_t size = split_size[0];
    VESTA_CHECK(size >= 0, runtime, "split: expects split_size be non-negative, but got split_size=", size, ".");
    VESTA_CHECK(size > 0 || n == 0, runtime,
                "split: split_size can only be 0 if dimension size is 0, but got dimension size of ", n, ".");
    return pieces(input, d, size);
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
  return r;
}

TensorVector chunk(const Tensor& input, int64_t chunks, int64_t dim) {
  check_defined(input, "chunk", "input");
  VESTA_CHECK(input.dim() > 0, runtime, "chunk: expects at least a 1-dimensional tensor.");
  VESTA_CHECK(chunks > 0, runtime, "chunk: expects `chunks` to be greater than 0, got: ", chunks, ".");
  int64_t d = wrap_dim(dim, input.dim(), "chunk"), n = input.sizes()[size_t(d)];
  if (n == 0) {
    VESTA_CHECK(chunks <= 1 << 20, value, "chunk: expected at most 2^20 chunks of an empty dimension, got ", chunks,
                ".");
    return TensorVector(size_t(chunks), slice(input, d, 0, 0, 1));
  }
  return pieces(input, d, n / chunks + (n % chunks != 0));
}

Tensor stack(TensorList tensors, int64_t dim) {
  VESTA_CHECK(!tensors.empty(), runtime, "stack: expects a non-empty list of tensors.");
  TensorVector list;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_defined(tensors[i], "stack", "tensors");
    VESTA_CHECK(std::ranges::equal(tensors[i].sizes(), tensors[0].sizes()), runtime,
                "stack: expects each tensor to be equal size, but got ", tensors[0].sizes(), " at entry 0 and ",
                tensors[i].sizes(), " at entry ", i, ".");
    VESTA_CHECK(tensors[i].device() == tensors[0].device(), device, "stack: expected all tensors on one device, got ",
                tensors[0].device(), " at entry 0 and ", tensors[i].device(), " at entry ", i,
                ". Move one with .to().");
    list.push_back(unsqueeze(tensors[i], dim));
  }
  return cat(list, wrap_dim(dim, tensors[0].dim() + 1, "stack"));
}

Tensor sum_to_size(const Tensor& input, IntList size) {
  check_defined(input, "sum_to_size", "input");
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

void check_floating(const Tensor& input, const char* op) {
  check_defined(input, op, "input");
  VESTA_CHECK(is_differentiable(input.dtype()), not_implemented, op,
              ": expected a floating-point or complex dtype, got ", input.dtype(), " (input). Convert with .to().");
}

/// Returns x where a sum of many of its values is safe: 16-bit floats as float32.
Tensor widened(const Tensor& x) {
  return x.dtype() == DType::float16 || x.dtype() == DType::bfloat16 ? x.to(DType::float32) : x;
}
/// Returns the dtype of |x|.
DType real_dtype(DType d) {
  return d == DType::complex64 ? DType::float32 : d == DType::complex128 ? DType::float64 : d;
}

/// Raises x >= 0 to a positive power below 1. At 0, where the slope is infinite, the gradient is 0, as PyTorch has it.
Tensor root(const Tensor& x, double exponent) {
  Tensor zero = eq(x, 0);
  Tensor safe = where(zero, wrapped(1.0), x);
  return where(zero, wrapped(0.0), exponent == 0.5 ? sqrt(safe) : pow(safe, wrapped(exponent)));
}

/// Sums a >= 0 to the power of p. The gradient at 0 is 0 where the slope would be infinite.
Tensor sum_of_powers(const Tensor& a, double p, const MaybeDims& dim, bool keepdim) {
  if (p >= 1) return sum(pow(a, wrapped(p)), dim, keepdim);
  Tensor zero = eq(a, 0);
  Tensor powers = pow(where(zero, wrapped(1.0), a), wrapped(p));
  return sum(where(zero, wrapped(p < 0 ? std::numeric_limits<double>::infinity() : 0.0), powers), dim, keepdim);
}

Tensor variance(const Tensor& input, const MaybeDims& dim, double correction, bool keepdim, const char* op) {
  check_floating(input, op);
  Tensor x = widened(input);
  Tensor from_mean = sub(x, mean(x, dim, true));
  const int64_t count = reduce_shape(x, dim, keepdim, op).count;
  Tensor squares = square(x.is_complex() ? abs(from_mean) : from_mean);
  return true_divide(sum(squares, dim, keepdim), wrapped(std::max(0.0, double(count) - correction)));
}

}  // namespace

Tensor var(const Tensor& input, const MaybeDims& dim, double correction, bool keepdim) {
  return variance(input, dim, correction, keepdim, "var").to(real_dtype(input.dtype()));
}

Tensor std(const Tensor& input, const MaybeDims& dim, double correction, bool keepdim) {
  return root(variance(input, dim, correction, keepdim, "std"), 0.5).to(real_dtype(input.dtype()));
}

Tensor norm(const Tensor& input, double p, const MaybeDims& dim, bool keepdim, MaybeDType dtype) {
  if (auto r = autocast::redirected({autocast::Rule::none, autocast::Rule::float32_result}, norm, input, p, dim,
                                    keepdim, dtype))
    return *r;
  check_floating(input, "norm");
  const bool holds = !dtype || (promote(input.dtype(), *dtype) == *dtype && is_complex(*dtype) == input.is_complex());
  VESTA_CHECK(holds, runtime, "norm: expected a dtype that holds ", input.dtype(), " without narrowing, got ",
              dtype.value_or(DType::float32), " (dtype).");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const int64_t count = reduce_shape(input, dim, keepdim, "norm").count;
  VESTA_CHECK(count > 0 || (p >= 0 && p != infinity), runtime, "norm: expected elements for p = ", p, ", got shape ",
              input.sizes(), " (input), which has no such norm.");
  Tensor x = widened(dtype ? input.to(*dtype) : input), r;
  Tensor a = p == 2 && !x.is_complex() ? x : abs(x);
  if (p == 2) r = root(sum(square(a), dim, keepdim), 0.5);
  else if (p == 1) r = sum(a, dim, keepdim);
  else if (p == 0) r = sum(where(isnan(a), wrapped(1.0), sign(a)), dim, keepdim);
  else if (p == infinity) r = amax(a, dim, keepdim);
  else if (p == -infinity) r = amin(a, dim, keepdim);
  else if (p > 0)
    r = p > 1 ? root(sum_of_powers(a, p, dim, keepdim), 1 / p) : pow(sum_of_powers(a, p, dim, keepdim), wrapped(1 / p));
  else r = pow(sum_of_powers(a, p, dim, keepdim), wrapped(1 / p));
  return r.to(real_dtype(dtype.value_or(input.dtype())));
}

// ---- masks and indices ----

namespace {

/// Makes masked_fill's value one of the tensor's dtype; a number must fit it.
Tensor fill_value_of(const Tensor& input, const Tensor& mask, const Tensor& value, const char* op) {
  check_defined(input, op, "input");
  check_defined(mask, op, "mask");
  check_defined(value, op, "value");
  check_one_device(op, {{"input", input}, {"mask", mask}, {"value", value}});
  VESTA_CHECK(mask.dtype() == DType::bool_, runtime, op, ": expected a bool mask, got ", mask.dtype(), " (mask).");
  VESTA_CHECK(value.dim() == 0, runtime, op, ": expected a 0-dimensional value tensor, got one with ", value.dim(),
              " dimension(s) (value).");
  if (!value.impl()->wrapped_number) return value.to(input.dtype());
  Tensor r = empty_tensor({}, input.dtype());
  fill_values(r, value.item(), op);
  return r;
}

}  // namespace

Tensor masked_fill(const Tensor& input, const Tensor& mask, const Tensor& value) {
  Tensor v = fill_value_of(input, mask, value, "masked_fill");
  return where(mask, v, input);
}

Tensor masked_fill_(const Tensor& input, const Tensor& mask, const Tensor& value) {
  Tensor v = fill_value_of(input, mask, value, "masked_fill_");
  return copy_(input, where(mask, v, input), false);
}

Tensor masked_select(const Tensor& input, const Tensor& mask) {
  check_defined(input, "masked_select", "input");
  check_defined(mask, "masked_select", "mask");
  VESTA_CHECK(mask.dtype() == DType::bool_, runtime, "masked_select: expected a bool mask, got ", mask.dtype(),
              " (mask).");
  Dims shape = broadcast_shapes(input.sizes(), mask.sizes(), "masked_select");
  if (shape.empty()) return index_tensors(view(input, 1), {view(mask, 1)});
  return index_tensors(expand(input, shape), {expand(mask, shape)});
}

Tensor index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  return index_add_(clone(input), dim, index, source, alpha);
}
// Autocast's row (autocast.cpp) for composites that write into a copy: the parts may not change its dtype.
static constexpr autocast::Rules kWidestOnCuda{autocast::Rule::none, autocast::Rule::widest};

Tensor index_put(const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
  if (auto r = autocast::redirected(kWidestOnCuda, index_put, input, indices, values, accumulate)) return *r;
  return index_put_(clone(input), indices, values, accumulate);
}
Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
  if (auto r = autocast::redirected(kWidestOnCuda, scatter_add, input, dim, index, src)) return *r;
  return scatter_add_(clone(input), dim, index, src);
}

// ---- values ----

Tensor zero_(const Tensor& input) { return fill_(input, 0); }

namespace {

/// Checks the sizes of a factory that is made of others, so that the error names it.
IntList checked(IntList size, DType dtype, const char* op) {
  checked_mul(numel_of(size, op), itemsize(dtype), op);
  return size;
}

}  // namespace

Tensor zeros(IntList size, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return full(checked(size, d, "zeros"), 0, d, device);
}
Tensor ones(IntList size, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return full(checked(size, d, "ones"), 1, d, device);
}
Tensor rand(IntList size, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return uniform_(empty(checked(size, d, "rand"), d, device), 0, 1, generator);
}
Tensor randn(IntList size, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(default_dtype());
  return normal_(empty(checked(size, d, "randn"), d, device), 0, 1, generator);
}
Tensor randint(int64_t low, int64_t high, IntList size, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype.value_or(DType::int64);
  VESTA_CHECK(low < high, value, "randint: expected low < high, got low=", low, " and high=", high, ".");
  return random_(empty(checked(size, d, "randint"), d, device), low, high, generator);
}

Tensor empty_like(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  check_defined(input, "empty_like", "input");
  return empty_preserving(input, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
Tensor full_like(const Tensor& input, Scalar fill_value, MaybeDType dtype, MaybeDevice device) {
  return fill_(empty_like(input, dtype, device), fill_value);
}
Tensor zeros_like(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  return full_like(input, 0, dtype, device);
}
Tensor ones_like(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  return full_like(input, 1, dtype, device);
}
Tensor rand_like(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  return uniform_(empty_like(input, dtype, device), 0, 1, nullptr);
}
Tensor randn_like(const Tensor& input, MaybeDType dtype, MaybeDevice device) {
  return normal_(empty_like(input, dtype, device), 0, 1, nullptr);
}

Tensor new_empty(const Tensor& input, IntList size, MaybeDType dtype, MaybeDevice device) {
  check_defined(input, "new_empty", "input");
  return empty(size, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
Tensor new_full(const Tensor& input, IntList size, Scalar fill_value, MaybeDType dtype, MaybeDevice device) {
  check_defined(input, "new_full", "input");
  return full(size, fill_value, dtype.value_or(input.dtype()), device.value_or(input.device()));
}
Tensor new_zeros(const Tensor& input, IntList size, MaybeDType dtype, MaybeDevice device) {
  return new_full(input, size, 0, dtype, device);
}
Tensor new_ones(const Tensor& input, IntList size, MaybeDType dtype, MaybeDevice device) {
  return new_full(input, size, 1, dtype, device);
}

}  // namespace vesta
