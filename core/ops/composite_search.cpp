// Order statistics and searches that are made of other ops.
#include <algorithm>
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/ties.h>
#include <vesta/core/ops/view.h>

namespace vesta {

// ---- order statistics ----

TensorPair nanmedian_dim_composite(const Tensor& input, int64_t dim, bool keepdim) {
  check_real(input, "nanmedian");
  if (!is_float(input.dtype())) return median(input, dim, keepdim);
  const int64_t d = wrap_dim(dim, input.dim(), "nanmedian");
  VESTA_CHECK(input.dim() == 0 || input.size(d) > 0, index, "nanmedian: Expected reduction dim ", d,
              " to have non-zero size.");
  if (input.dim() == 0) return {clone(input), zeros(IntList(), DType::int64, input.device())};
  Tensor places;
  {
    NoGrad off;  // sorted, NaNs lie behind the numbers
    const Tensor count = sum(logical_not(isnan(input)), MaybeDims(d), true);
    const Tensor rank = floor_divide(clamp_min(sub(count, 1), 0), 2);
    places = gather(argsort(input, d), d, rank);
  }
  const Tensor values = gather(input, d, places);
  return keepdim ? TensorPair{values, places} : TensorPair{squeeze(values, d), squeeze(places, d)};
}

Tensor nanmedian_composite(const Tensor& input) {
  check_real(input, "nanmedian");
  if (input.numel() == 0) return median(input);
  const Tensor value = [&] {
    NoGrad off;
    return std::get<0>(nanmedian(reshape(input, -1), 0));
  }();
  return shared_extremum(input, value);
}

Tensor _mode_places_composite(const Tensor& input, int64_t dim) {
  // In a sorted line, an element's number in its run of equals is its index less that of the run's first.
  const int64_t d = wrap_dim(dim, input.dim(), "mode"), n = input.size(d);
  const Tensor order = _places_with_ties(input, 0, n, d, false, "sort"), sorted = gather(input, d, order);
  Dims shape(size_t(input.dim() - d), 1);
  shape[0] = n;
  const Tensor places = expand(reshape(arange(0, n, 1, DType::int64, input.device()), shape), sorted.sizes());
  const Tensor after = slice(sorted, d, 1, n, 1), before = slice(sorted, d, 0, n - 1, 1);
  const Tensor fresh = cat({ones_like(slice(places, d, 0, 1, 1), DType::bool_), ne(after, before)}, d);
  const Tensor start = std::get<0>(cummax(where(fresh, places, wrapped(int64_t(0))), d));
  return gather(order, d, argmax(sub(places, start), d, true));
}

TensorPair mode_composite(const Tensor& input, int64_t dim, bool keepdim) {
  check_real(input, "mode");
  const int64_t d = wrap_dim(dim, input.dim(), "mode");
  if (input.dim() == 0) return {clone(input), zeros(IntList(), DType::int64, input.device())};
  VESTA_CHECK(input.size(d) > 0, index, "mode: Expected reduction dim ", d, " to have non-zero size.");
  Tensor at;
  {
    NoGrad off;
    at = _mode_places(input, d);
  }
  const Tensor values = gather(input, d, at);
  return keepdim ? TensorPair{values, at} : TensorPair{squeeze(values, d), squeeze(at, d)};
}

// ---- searches ----

namespace {

DType joint_type(const Tensor& a, const Tensor& b) {
  Promotion types;
  types.see(a);
  types.see(b);
  return types.result();
}

/// Searches in `joint`; a number goes where the lines are.
Tensor search(const Tensor& lines, const Tensor& input, DType joint, bool right) {
  const Tensor values = input.impl()->wrapped_number ? input.to(lines.device()) : input;
  return _searchsorted(contiguous(lines.to(joint)), contiguous(values.to(joint)), right);
}

}  // namespace

Tensor _searchsorted_composite(const Tensor& lines, const Tensor& values, bool right) {
  // By halves, all values at once: `low` is an index that is not too far, and the answer lies in [low, low + step].
  const int64_t n = lines.size(-1);
  const bool shared = lines.dim() == 1;
  const Tensor line = shared ? lines : Tensor();
  Tensor low = zeros(values.sizes(), DType::int64, values.device());
  int64_t step = 1;
  while (step <= n / 2) step *= 2;
  if (n == 0) return low;
  const bool floats = is_float(values.dtype());  // NaN is the largest, in both
  for (; step > 0; step /= 2) {
    const Tensor next = add(low, step);
    const Tensor at = clamp_max(sub(next, 1), n - 1);
    const Tensor found = shared ? reshape(index_select(line, 0, reshape(at, -1)), at.sizes()) : gather(lines, -1, at);
    Tensor before = right ? le(found, values) : lt(found, values);
    if (floats) {
      before = right ? logical_or(before, isnan(values))
                     : logical_or(before, logical_and(isnan(values), logical_not(isnan(found))));
    }
    low = where(logical_and(le(next, n), before), next, low);
  }
  return low;
}

Tensor searchsorted_composite(const Tensor& sorted_sequence, const Tensor& input, bool out_int32, bool right,
                              MaybeText side, MaybeTensor sorter) {
  constexpr const char* op = "searchsorted";
  const Tensor& lines = sorted_sequence;
  VESTA_CHECK(!side || *side == "left" || *side == "right", runtime, op,
              ": side can only be 'left' or 'right' but got '", side.value_or(""), "'.");
  VESTA_CHECK(!side || *side == "right" || !right, runtime, op,
              ": side and right can't be set to opposites, got side of left while right was True.");
  check_real(lines, op, "sorted_sequence");
  check_real(input, op);
  VESTA_CHECK(lines.dim() > 0, runtime, op, ": input value can be a scalar only when boundaries tensor dimension is ",
              "1, but we got boundaries tensor dim(0).");
  const bool number = input.impl()->wrapped_number;
  VESTA_CHECK(number || input.dtype() == lines.dtype(), runtime, op,
              ": boundary tensor and input value tensor should have same dtype, but got boundary tensor ",
              lines.dtype(), " and input value tensor ", input.dtype(), ".");
  if (input.dim() == 0) {
    VESTA_CHECK(lines.dim() == 1, runtime, op,
                ": input value can be a scalar only when boundaries tensor dimension is ",
                "1, but we got boundaries tensor dim(", lines.dim(), ").");
  } else if (lines.dim() != 1) {
    const bool fits = lines.dim() == input.dim() && std::ranges::equal(lines.sizes().first(size_t(lines.dim() - 1)),
                                                                       input.sizes().first(size_t(input.dim() - 1)));
    VESTA_CHECK(fits, runtime, op, ": boundaries tensor should be 1 dimension or the first N-1 dimensions of ",
                "boundaries tensor and input value tensor must match, but we got ", lines.sizes(), " and ",
                input.sizes(), ".");
  }
  NoGrad off;
  Tensor sequence = lines;
  if (sorter.defined()) {
    VESTA_CHECK(std::ranges::equal(sorter->sizes(), lines.sizes()) && sorter->dtype() == DType::int64, runtime, op,
                ": boundary and sorter must have the same size, and sorter must be int64, but got ", lines.sizes(),
                " and ", sorter->sizes(), " of ", sorter->dtype(), ".");
    sequence = gather(lines, -1, *sorter);
  }
  const DType joint = number ? joint_type(lines, input) : lines.dtype();
  const Tensor r = search(sequence, input, joint, right || (side && *side == "right"));
  return out_int32 ? r.to(DType::int32) : r;
}

Tensor bucketize_composite(const Tensor& input, const Tensor& boundaries, bool out_int32, bool right) {
  VESTA_CHECK(boundaries.dim() == 1, runtime, "bucketize: boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(), ").");
  check_real(boundaries, "bucketize", "boundaries");
  check_real(input, "bucketize");
  NoGrad off;
  const DType joint = joint_type(input, boundaries);
  const Tensor r = search(boundaries, input, joint, right);
  return out_int32 ? r.to(DType::int32) : r;
}

}  // namespace vesta
