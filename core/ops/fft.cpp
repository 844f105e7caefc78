#include <vesta/core/ops/fft.h>

#include <cmath>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/fft.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
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

/// Transforms real values over several dimensions: what rfft, rfft2 and rfftn are.
Tensor transform_real(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm, const char* op) {
  const Tensor x = real_operand(input, op);
  const FftShape shape = fft_shape(x, s, dim, op);
  return _fft_r2c(fft_resized(x, shape), shape.dims, int64_t(fft_norm(norm, true, op)), true);
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

Tensor fft_rfft2_composite(const Tensor& input, const MaybeDims& s, IntList dim, MaybeText norm) {
  return transform_real(input, s, dim, norm, "fft.rfft2");
}

}  // namespace vesta
