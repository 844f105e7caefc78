#include <vesta/core/ops/fft.h>

#include <cmath>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/fft.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_FFT)

namespace {

/// Returns a real operand in a dtype that has transforms.
Tensor real_operand(const Tensor& input, const char* op) {
  const DType d = input.dtype();
  VESTA_CHECK(!is_complex(d), type, op, ": expects a real-valued input tensor, but got ", d, " (input).");
  if (!is_float(d)) return real_operand(input.to(default_dtype()), op);
  VESTA_CHECK(itemsize(d) >= 4, not_implemented, op, ": Unsupported dtype ", d, " (input). Convert with .to().");
  return input;
}

/// Returns an operand as complex numbers that have transforms.
Tensor complex_operand(const Tensor& input, const char* op) {
  if (is_complex(input.dtype())) return input;
  const Tensor real = real_operand(input, op);
  return real.to(complex_type(real.dtype()));
}

/// The dimensions of a transform that names them, or their sizes, or neither.
Dims dims_of(const Tensor& input, const MaybeDims& s, const MaybeDims& dim, const char* op) {
  if (dim) return Dims(*dim);
  const int64_t count = s ? int64_t((*s).size()) : input.dim();
  VESTA_CHECK(count <= input.dim(), runtime, op, ": Got shape with ", count, " values but input tensor only has ",
              input.dim(), " dimensions.");
  Dims dims;
  for (int64_t d = input.dim() - count; d < input.dim(); ++d) dims.push_back(d);
  return dims;
}

/// The shape of half a spectrum from which real values of the asked sizes come, and the last of these.
std::pair<FftShape, int64_t> half_shape(const Tensor& input, const MaybeDims& s, IntList dim, const char* op) {
  FftShape shape = fft_shape(input, s, dim, op);
  const int64_t n = s && (*s).back() != -1 ? (*s).back() : 2 * (input.size(shape.dims.back()) - 1);
  VESTA_CHECK(n >= 1, runtime, op, ": Invalid number of data points (", n, ") specified.");
  shape.sizes.back() = n / 2 + 1;
  return {shape, n};
}

template <bool forward>
Tensor transform(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm, const char* op) {
  const Tensor x = complex_operand(input, op);
  VESTA_CHECK(!s || (*s).size() == dim.size(), runtime, op,
              ": When given, dim and shape arguments must have the same length.");
  if (dim.empty()) return clone(x);
  const FftShape shape = fft_shape(x, s, dim, op);
  return _fft_c2c(fft_resized(x, shape), shape.dims, int64_t(fft_norm(norm, forward, op)), forward);
}
Tensor transform_real(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm, const char* op) {
  const Tensor x = real_operand(input, op);
  const FftShape shape = fft_shape(x, s, dim, op);
  return _fft_r2c(fft_resized(x, shape), shape.dims, int64_t(fft_norm(norm, true, op)), true);
}
Tensor transform_back_to_real(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm, const char* op) {
  const Tensor x = complex_operand(input, op);
  const auto [shape, n] = half_shape(x, s, dim, op);
  return _fft_c2r(fft_resized(x, shape), shape.dims, int64_t(fft_norm(norm, false, op)), n);
}
/// Transforms half a Hermitian signal: the others of several dimensions first, then the last as irfft of the conjugate.
Tensor transform_hermitian(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm, const char* op) {
  const Tensor x = complex_operand(input, op);
  const auto [shape, n] = half_shape(x, s, dim, op);
  const int64_t scale = int64_t(fft_norm(norm, true, op));
  Dims others(shape.dims);
  others.pop_back();
  Tensor r = fft_resized(x, shape);
  if (!others.empty()) r = _fft_c2c(r, others, scale, true);
  return _fft_c2r(conj(r), IntList(shape.dims.back()), scale, n);
}
Tensor transform_to_hermitian(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm, const char* op) {
  const Tensor x = real_operand(input, op);
  const FftShape shape = fft_shape(x, s, dim, op);
  const int64_t scale = int64_t(fft_norm(norm, false, op));
  Dims others(shape.dims);
  others.pop_back();
  const Tensor half = conj(_fft_r2c(fft_resized(x, shape), IntList(shape.dims.back()), scale, true));
  return others.empty() ? half : _fft_c2c(half, others, scale, false);
}

/// Returns the size of a transform along one dimension.
MaybeDims one_size(MaybeInt n, const char* op) {
  if (!n) return {};
  VESTA_CHECK(*n > 0, runtime, op, ": Invalid number of data points (", *n, ") specified.");
  return MaybeDims(*n);
}

/// Rolls every dimension, or those of `dim`, by half its size, rounded down or up.
Tensor shifted(const Tensor& input, const MaybeDims& dim, int64_t round_up) {
  Dims dims = dims_of(input, {}, dim, "fft.fftshift"), shifts;
  for (int64_t d : dims) shifts.push_back((input.size(d) + round_up) / 2);
  return dims.empty() ? clone(input) : roll(input, shifts, dims);
}

Tensor frequencies(const Tensor& numbers, int64_t n, double d, MaybeDType dtype, const char* op) {
  const DType result = dtype.value_or(default_dtype());
  VESTA_CHECK(is_differentiable(result), runtime, op, ": expected a floating-point or complex dtype, got ", result,
              ".");
  return mul(numbers.to(DType::float64), wrapped(1 / (double(n) * d))).to(result);
}

}  // namespace

FftNorm fft_norm(MaybeText norm, bool forward, const char* op) {
  const Text mode = norm.value_or("backward");
  if (mode == "ortho") return FftNorm::by_root_n;
  VESTA_CHECK(mode == "forward" || mode == "backward", value, op,
              ": expected norm to be one of 'backward', 'ortho', 'forward' or None, got '", mode, "'.");
  return (mode == "forward") == forward ? FftNorm::by_n : FftNorm::none;
}

double fft_scale(int64_t norm, IntSpan sizes, IntSpan dims) {
  double n = 1;
  for (int64_t d : dims) n *= double(sizes[size_t(d)]);
  switch (FftNorm(norm)) {
    case FftNorm::none: return 1;
    case FftNorm::by_root_n: return 1 / std::sqrt(n);
    case FftNorm::by_n: return 1 / n;
  }
  fail(Cause::value, "fft: expected a normalization of 0, 1 or 2, got ", norm, ".");
}

FftShape fft_shape(const Tensor& input, const MaybeDims& s, IntList dim, const char* op) {
  FftShape shape;
  VESTA_CHECK(!dim.empty(), runtime, op, ": must transform at least one axis (dim).");
  for (int64_t d : dim) shape.dims.push_back(existing_dim(d, input.dim(), op));
  dim_mask(dim, input.dim(), op);  // raises where a dimension is named twice
  VESTA_CHECK(!s || (*s).size() == dim.size(), runtime, op,
              ": When given, dim and shape arguments must have the same length, got ", dim.size(), " and ",
              s ? (*s).size() : 0, ".");
  for (size_t i = 0; i < dim.size(); ++i) {
    const bool given = s && (*s)[i] != -1;
    shape.sizes.push_back(given ? (*s)[i] : input.sizes()[size_t(shape.dims[i])]);
    VESTA_CHECK(shape.sizes[i] > 0, runtime, op, ": Invalid number of data points (", shape.sizes[i],
                ") specified for dimension ", shape.dims[i], ".");
  }
  return shape;
}

Tensor fft_resized(const Tensor& input, const FftShape& shape) {
  Tensor x = input;
  for (size_t i = 0; i < shape.dims.size(); ++i) {
    const int64_t d = shape.dims[i], have = x.size(d), want = shape.sizes[i];
    if (want < have) x = narrow(x, d, 0, want);
    if (want <= have) continue;
    Dims rest(x.sizes());
    rest[size_t(d)] = want - have;
    x = cat({x, zeros(rest, x.dtype(), x.device())}, d);
  }
  return x;
}

Dims fft_dims(const Tensor& input, IntList dim, bool complex, const char* op) {
  VESTA_CHECK(is_complex(input.dtype()) == complex && is_differentiable(input.dtype()) &&
                  itemsize(real_type(input.dtype())) >= 4,
              type, op, ": expected a ", complex ? "complex64 or complex128" : "float32 or float64", " input, got ",
              input.dtype(), ".");
  return fft_shape(input, {}, dim, op).dims;
}

#define VESTA_FFT_FORMS(name, function)                                                                          \
  Tensor fft_##name##_composite(const Tensor& input, MaybeInt n, int64_t dim, MaybeText norm) {                  \
    return function(input, one_size(n, "fft." #name), IntList(dim), norm, "fft." #name);                   \
  }                                                                                                              \
  Tensor fft_##name##2_composite(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm) {         \
    return function(input, s, dim, norm, "fft." #name "2");                                                      \
  }                                                                                                              \
  Tensor fft_##name##n_composite(const Tensor& input, const MaybeDims& s, const MaybeDims& dim, MaybeText norm) { \
    const Dims dims = dims_of(input, s, dim, "fft." #name "n");                                                  \
    return function(input, s, IntList(dims), norm, "fft." #name "n");                                            \
  }
VESTA_FFT_FORMS(fft, transform<true>)
VESTA_FFT_FORMS(ifft, transform<false>)
VESTA_FFT_FORMS(rfft, transform_real)
VESTA_FFT_FORMS(irfft, transform_back_to_real)
VESTA_FFT_FORMS(hfft, transform_hermitian)
VESTA_FFT_FORMS(ihfft, transform_to_hermitian)
#undef VESTA_FFT_FORMS

Tensor fft_fftshift_composite(const Tensor& input, const MaybeDims& dim) { return shifted(input, dim, 0); }
Tensor fft_ifftshift_composite(const Tensor& input, const MaybeDims& dim) { return shifted(input, dim, 1); }

Tensor fft_fftfreq_composite(int64_t n, double d, MaybeDType dtype, MaybeDevice device) {
  VESTA_CHECK(n >= 0, runtime, "fft.fftfreq: expected n >= 0, got ", n, ".");
  const Tensor number = arange(0, n, 1, DType::int64, device);
  const Tensor wrapped_round = sub(number, mul(ge(number, wrapped((n + 1) / 2)), wrapped(n)));
  return frequencies(wrapped_round, n, d, dtype, "fft.fftfreq");
}
Tensor fft_rfftfreq_composite(int64_t n, double d, MaybeDType dtype, MaybeDevice device) {
  VESTA_CHECK(n > 0, runtime, "fft.rfftfreq: expected n > 0, got ", n, ".");
  return frequencies(arange(0, n / 2 + 1, 1, DType::int64, device), n, d, dtype, "fft.rfftfreq");
}

}  // namespace vesta
