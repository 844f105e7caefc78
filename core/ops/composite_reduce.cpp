// Reductions, counts and integrals that are made of other ops: their gradients come from those.
#include <algorithm>
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>

namespace vesta {

// ---- products ----

Tensor prod_composite(const Tensor& input, MaybeDType dtype) {
  return prod(input.dim() == 1 ? input : reshape(input, -1), 0, false, dtype);
}

// ---- counts ----

Tensor _bin_counts_composite(const Tensor& input, int64_t bins, double min, double max) {
  const Tensor x = reshape(input, -1).to(bins_dtype(input.dtype(), bins, min, max));
  const Tensor inside = logical_and(ge(x, wrapped(min)), le(x, wrapped(max)));
  const Tensor place = div(mul(sub(x, wrapped(min)), wrapped(double(bins))), wrapped(max - min));
  const Tensor bin = clamp_max(where(inside, place, wrapped(0.0)).to(DType::int64), bins - 1);
  return index_add(zeros(bins, DType::int64, input.device()), 0, bin, inside.to(DType::int64));
}

Tensor histc_composite(const Tensor& input, int64_t bins, double min, double max) {
  check_floating(input, "histc");
  VESTA_CHECK(bins > 0, runtime, "histc: bins must be > 0, got ", bins, ".");
  VESTA_CHECK(max >= min, runtime, "histc: max must be larger than min, got ", min, " and ", max, ".");
  NoGrad off;
  Tensor x = reshape(input, -1);
  if (min == max && x.numel() > 0 && has_values(x)) {
    min = amin(x).item().to<double>("histc"), max = amax(x).item().to<double>("histc");
  }
  // The edges are numbers of input's dtype, so that an element that equals one lies inside.
  visit<kFloats>(input.dtype(), [&]<class T>() { min = double(T(min)), max = double(T(max)); });
  VESTA_CHECK(max - min < std::numeric_limits<double>::infinity(), runtime, "histc: range of [", min, ", ", max,
              "] is not finite.");
  if (min == max) min -= 1, max += 1;
  return _bin_counts(x, bins, min, max).to(input.dtype());
}

Tensor bincount_composite(const Tensor& input, MaybeTensor weights, int64_t minlength) {
  VESTA_CHECK(is_integral(input.dtype()), type, "bincount: expected integers, got ", input.dtype(), " (input).");
  VESTA_CHECK(input.dim() == 1, runtime, "bincount: only supports 1-d non-negative integral inputs, got shape ",
              input.sizes(), ".");
  VESTA_CHECK(minlength >= 0, runtime, "bincount: minlength should be >= 0, got ", minlength, ".");
  VESTA_CHECK(!weights.defined() || (weights->dim() == 1 && weights->numel() == input.numel()), runtime,
              "bincount: weights should be 1-d and have the same length as input, got ",
              weights.defined() ? weights->sizes() : IntSpan(), " and ", input.sizes(), ".");
  int64_t size = minlength;
  if (input.numel() > 0) {
    VESTA_CHECK(amin(input).item<int64_t>() >= 0, runtime, "bincount: only supports 1-d non-negative integral inputs.");
    size = std::max(size, checked_add(amax(input).item<int64_t>(), 1, "bincount"));
  }
  if (!weights.defined() && input.numel() > 0 && ops::_bin_counts.is_fused_on(input.device().type())) {
    return _bin_counts(input, size, 0, double(size));
  }
  const Tensor places = input.to(DType::int64);
  if (!weights.defined()) {
    return index_add(zeros(size, DType::int64, input.device()), 0, places, ones_like(places));
  }
  const DType sums = weights->dtype() == DType::float32 ? DType::float32 : DType::float64;
  return index_add(zeros(size, sums, input.device()), 0, places, weights->to(sums));
}

// ---- integrals ----

namespace {

/// Returns the sums of neighbours along d, times their distances and a half: the areas of the trapezoids.
Tensor trapezoids(const Tensor& y, const Tensor& width, int64_t d) {
  const int64_t n = y.size(d);
  const Tensor sums = add(slice(y, d, 0, std::max<int64_t>(n - 1, 0), 1), slice(y, d, std::min<int64_t>(1, n), n, 1));
  return mul(mul(sums, width), wrapped(0.5));
}

Tensor widths(const Tensor& y, const Tensor& x, int64_t d, const char* op) {
  VESTA_CHECK(x.dim() > 0, runtime, op, ": expected x of at least 1 dimension, got a 0-d tensor.");
  VESTA_CHECK(y.dtype() != DType::bool_ && x.dtype() != DType::bool_, runtime, op,
              ": received a bool input for x or y, but bool is not supported.");
  if (x.dim() == 1) {
    VESTA_CHECK(x.size(0) == y.size(d), runtime, op, ": There must be one x value for each sample point, got ",
                x.sizes(), " (x) for ", y.sizes(), " (y).");
    Dims shape(size_t(y.dim() - d), 1);
    shape[0] = -1;
    return reshape(diff(x), shape);
  }
  return diff(x, 1, x.dim() == y.dim() ? d : d - y.dim() + x.dim());
}

}  // namespace

Tensor trapezoid_x_composite(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim(), "trapezoid");
  return sum(trapezoids(y, widths(y, x, d, "trapezoid"), d), MaybeDims(d));
}

Tensor trapezoid_dx_composite(const Tensor& y, double dx, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim(), "trapezoid");
  VESTA_CHECK(y.dtype() != DType::bool_, runtime, "trapezoid: received a bool input for y, but bool is not supported.");
  return sum(trapezoids(y, wrapped(dx), d), MaybeDims(d));
}

Tensor trapz_x_composite(const Tensor& y, const Tensor& x, int64_t dim) { return trapezoid(y, x, dim); }
Tensor trapz_dx_composite(const Tensor& y, double dx, int64_t dim) {
  VESTA_CHECK(y.dtype() != DType::bool_, runtime, "trapz: received a bool input for y, but bool is not supported.");
  return trapezoid(y, dx, dim);
}

Tensor cumulative_trapezoid_x_composite(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim(), "cumulative_trapezoid");
  return cumsum(trapezoids(y, widths(y, x, d, "cumulative_trapezoid"), d), d);
}

Tensor cumulative_trapezoid_dx_composite(const Tensor& y, double dx, int64_t dim) {
  const int64_t d = wrap_dim(dim, y.dim(), "cumulative_trapezoid");
  VESTA_CHECK(y.dtype() != DType::bool_, runtime,
              "cumulative_trapezoid: received a bool input for y, but bool is not supported.");
  return cumsum(trapezoids(y, wrapped(dx), d), d);
}

}  // namespace vesta
