#include <vesta/core/ops/sort.h>

#include <cmath>
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/sort.h>
#include <vesta/core/ops/docs/ties.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/ties.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SORT)
VESTA_DEFINE_OPS(VESTA_OPS_TIES)

Tensor argsort_composite(const Tensor& x, int64_t dim, bool descending) {
  check_real(x, "argsort");
  return std::get<1>(sort(x, dim, descending));
}

Tensor msort_composite(const Tensor& x) {
  check_real(x, "msort");
  return std::get<0>(sort(x, 0));
}

Tensor _places_by_rank_composite(const Tensor& input, int64_t first, int64_t count, int64_t dim, bool largest) {
  const Tensor order = std::get<1>(sort(input, MaybeBool(true), dim, largest));
  return input.dim() == 0 ? order : contiguous(narrow(order, dim, first, count));
}

Tensor _places_with_ties_composite(const Tensor& input, int64_t first, int64_t count, int64_t dim, bool largest, Text) {
  return _places_by_rank(input, first, count, dim, largest);
}

namespace {

/// Returns the elements of ranks first, first + 1, ... along d, and their indices; `ties`: ties.h.
TensorPair at_ranks(const Tensor& input, int64_t first, int64_t count, int64_t d, bool largest, Text ties) {
  if (input.dim() == 0) return {clone(input), zeros(IntList(), DType::int64, input.device())};
  const Tensor places = ties == "stable" ? _places_by_rank(input, first, count, d, largest)
                                         : _places_with_ties(input, first, count, d, largest, ties);
  return {gather(input, d, places), places};
}

}  // namespace

TensorPair topk_composite(const Tensor& input, int64_t k, int64_t dim, bool largest, bool sorted) {
  check_real(input, "topk");
  const int64_t d = wrap_dim(dim, input.dim(), "topk"), n = input.dim() ? input.size(d) : 1;
  VESTA_CHECK(k >= 0 && k <= n, runtime, "topk: selected index k out of range: expected k in [0, ", n, "], got ", k,
              ".");
  return named_step(at_ranks(input, 0, k, d, largest, sorted ? "topk" : "topk_unsorted"), "TopkBackward0");
}

namespace {

/// Returns the k-th element, from 0, of a sorted line and its index, without the dimension unless it is kept.
TensorPair at_rank(const Tensor& input, int64_t k, int64_t d, bool keepdim, Text ties) {
  const auto [values, places] = at_ranks(input, k, 1, d, false, ties);
  if (keepdim || input.dim() == 0) return {values, places};
  return {squeeze(values, d), squeeze(places, d)};
}

}  // namespace

TensorPair kthvalue_composite(const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
  check_real(input, "kthvalue");
  const int64_t d = wrap_dim(dim, input.dim(), "kthvalue"), n = input.dim() ? input.size(d) : 1;
  VESTA_CHECK(k >= 1 && k <= n, runtime, "kthvalue: selected number k out of range for dimension ", d,
              ": expected k in [1, ", n, "], got ", k, ".");
  return named_step(at_rank(input, k - 1, d, keepdim, "kthvalue"), "KthvalueBackward0");
}

TensorPair median_dim_composite(const Tensor& input, int64_t dim, bool keepdim) {
  check_real(input, "median");
  const int64_t d = wrap_dim(dim, input.dim(), "median"), n = input.dim() ? input.size(d) : 1;
  VESTA_CHECK(n > 0, index, "median: Expected reduction dim ", d, " to have non-zero size.");
  TensorPair middle = at_rank(input, (n - 1) / 2, d, keepdim, "stable");
  if (!is_float(input.dtype()) || input.dim() == 0) return middle;
  Tensor first;  // of the NaNs in a line; the middle value where there is none
  {
    NoGrad off;
    const auto [flags, places] = max(isnan(input).to(DType::uint8), d, keepdim);
    first = where(ne(flags, 0), places, std::get<1>(middle));
  }
  const Tensor at = keepdim ? first : unsqueeze(first, d);
  const Tensor values = gather(input, d, at);
  return {keepdim ? values : squeeze(values, d), first};
}

Tensor shared_extremum(const Tensor& input, const Tensor& value) {
  if (!layer_state.grad_enabled || !input.requires_grad()) return value;
  const Tensor equal = logical_or(eq(input, value), logical_and(isnan(value), isnan(input)));
  return amax(where(equal, input, wrapped(-std::numeric_limits<double>::infinity())));
}

Tensor median_composite(const Tensor& input) {
  check_real(input, "median");
  if (input.numel() == 0) {
    VESTA_CHECK(is_float(input.dtype()), runtime, "median: expected at least one element of ", input.dtype(), ", got ",
                "shape ", input.sizes(), ".");
    return full(IntList(), std::numeric_limits<double>::quiet_NaN(), input.dtype(), input.device());
  }
  const Tensor value = [&] {
    NoGrad off;
    return std::get<0>(median(reshape(input, -1), 0));
  }();
  return named_step(shared_extremum(input, value), "MedianBackward0");
}

namespace {

/// Consecutive ranks.
struct RankRange {
  int64_t first, count;
};

/// Returns the ranks that quantiles of lines of n elements lie between, where those are few and the host can see that:
/// a sort of the rest is left out. Else, and where a NaN has a say in what the ranks are, returns all of them.
RankRange ranks_of_quantiles(const Tensor& lines, const Tensor& q, int64_t n) {
  const RankRange all_of_them{0, n};
  const bool on_host = lines.device().type() == DeviceType::cpu && q.device().type() == DeviceType::cpu;
  if (!on_host || q.numel() == 0 || !has_values(lines) || !has_values(q)) return all_of_them;
  NoGrad off;
  const double low = amin(q).item<double>() * double(n - 1), high = amax(q).item<double>() * double(n - 1);
  const RankRange range{int64_t(std::floor(low)), int64_t(std::ceil(high)) - int64_t(std::floor(low)) + 1};
  return range.count > n / 2 || any(isnan(lines)).item<bool>() ? all_of_them : range;
}

/// Returns the quantile of sorted lines whose rank the host knows, as the last dimension: the same as quantiles()
/// computes, in fewer ops.
Tensor quantile_at(const Tensor& sorted, double rank, Text interpolation) {
  const auto is = [&](const char* name) { return interpolation == name; };
  const double down = std::floor(rank), part = rank - down;
  if (is("lower")) rank = down;
  if (is("higher")) rank = std::ceil(rank);
  if (is("nearest")) rank = down + (part > 0.5 || (part == 0.5 && std::fmod(down, 2) != 0) ? 1 : 0);
  const double below = std::floor(rank), above = std::ceil(rank);
  const auto at = [&](double place) { return narrow(sorted, -1, int64_t(place), 1); };
  Tensor r = at(below);
  if (is("linear") || is("midpoint")) {
    const double between = is("midpoint") ? (below == above ? 0 : 0.5) : rank - below;
    const bool wide = sorted.dtype() == DType::float64;
    r = lerp(r, at(above), wide ? between : double(float(between)));
  }
  const Tensor largest = at(double(sorted.size(-1) - 1));
  return where(isnan(largest), largest, r);  // NaN is larger than all
}

/// The quantiles of lines; `skip_nan`: of their numbers, so that a line of NaN alone gives NaN. A number q may lie on
/// the host where the input does not.
Tensor quantiles(const char* op, const Tensor& input, const Tensor& q, MaybeInt dim, bool keepdim, Text interpolation,
                 bool skip_nan) {
  VESTA_CHECK(input.dtype() == DType::float32 || input.dtype() == DType::float64, runtime, op,
              ": expected an input of dtype float32 or float64, got ", input.dtype(), ".");
  VESTA_CHECK(q.dtype() == input.dtype(), runtime, op, ": q tensor must be same dtype as the input tensor, got ",
              q.dtype(), " and ", input.dtype(), ".");
  VESTA_CHECK(q.dim() <= 1, runtime, op, ": q must be a scalar or 1D tensor, got shape ", q.sizes(), ".");
  VESTA_CHECK(input.numel() > 0, runtime, op, ": input tensor must be non-empty.");
  const auto is = [&](const char* name) { return interpolation == name; };
  VESTA_CHECK(is("linear") || is("lower") || is("higher") || is("midpoint") || is("nearest"), runtime, op,
              ": interpolation must be one of linear, lower, higher, midpoint or nearest, but got '", interpolation,
              "'.");
  VESTA_CHECK(q.device().type() != DeviceType::cpu || all(logical_and(ge(q, 0), le(q, 1))).item<bool>(), runtime, op,
              ": q values must be in the range [0, 1].");
  const Tensor x = dim && input.dim() ? input : reshape(input, -1);
  const int64_t d = wrap_dim(dim.value_or(0), std::max<int64_t>(input.dim(), 1), op);
  const int64_t at = dim && input.dim() ? d : 0;
  const Tensor lines = transpose(x, at, -1);
  const int64_t n = lines.size(-1);
  const RankRange range = skip_nan ? RankRange{0, n} : ranks_of_quantiles(lines, q, n);
  const Tensor sorted = range.count < n
                            ? std::get<0>(at_ranks(lines, range.first, range.count, lines.dim() - 1, false, "stable"))
                            : std::get<0>(sort(lines, MaybeBool(true), -1, false));
  const auto by_tensors = [&] {
    Tensor last = wrapped(double(n - 1));  // the rank of a line's largest number; NaN is larger than all
    if (skip_nan) last = clamp_min(sub(sum(logical_not(isnan(sorted)), MaybeDims(-1), true), 1), 0).to(DType::float64);
    Tensor rank = mul(reshape(q, -1).to(DType::float64), last);
    if (is("lower")) rank = floor(rank);
    if (is("higher")) rank = ceil(rank);
    if (is("nearest")) {  // the even one of two as near
      const Tensor down = floor(rank), part = sub(rank, down), odd = remainder(down, 2);
      rank = add(down, logical_or(gt(part, 0.5), logical_and(eq(part, 0.5), ne(odd, 0))).to(rank.dtype()));
    }
    if (range.count < n) {  // among those that were found, the same for all lines
      Dims sizes(sorted.sizes());
      sizes.back() = rank.numel();
      rank = expand(sub(rank, double(range.first)), sizes);
    } else if (!skip_nan) {
      rank = where(isnan(narrow(sorted, -1, n - 1, 1)), last, rank);
    }
    const Tensor below = floor(rank), above = ceil(rank);
    const Tensor low = gather(sorted, -1, below.to(DType::int64)), high = gather(sorted, -1, above.to(DType::int64));
    const Tensor between = is("midpoint") ? mul(ne(below, above).to(rank.dtype()), 0.5) : sub(rank, below);
    // a rank that was rounded is no place between two, one of which may be infinite
    return is("linear") || is("midpoint") ? lerp(low, high, between.to(input.dtype())) : low;
  };
  const bool is_known = !skip_nan && q.dim() == 0 && lines.device() != q.device() && has_values(q);
  Tensor r = is_known ? quantile_at(sorted, q.item<double>() * double(n - 1), interpolation) : by_tensors();
  if (input.dim() == 0) return reshape(r, q.sizes());
  r = transpose(unsqueeze(r, 0), 0, -1);  // [q, lines..., 1]: the values of q first, the reduced dimension last
  r = transpose(r, at + 1, -1);  // back to its place
  if (!keepdim) {
    r = squeeze(r, at + 1);
  } else if (!dim) {
    Dims ones(size_t(input.dim()) + 1, 1);
    ones[0] = r.size(0);
    r = reshape(r, ones);
  }
  return q.dim() == 0 ? squeeze(r, 0) : contiguous(r);
}

Tensor number_of_quantile(const char* op, const Tensor& input, double q) {
  VESTA_CHECK(q >= 0 && q <= 1, runtime, op, ": q must be in the range [0, 1] but got ", q, ".");
  return full(IntList(), q, input.dtype(), input.device());
}

}  // namespace

Tensor quantile_scalar_composite(const Tensor& input, double q, MaybeInt dim, bool keepdim, Text interpolation) {
  if (input.device().type() != DeviceType::cpu && is_float(input.dtype())) {  // the host knows the rank
    VESTA_CHECK(q >= 0 && q <= 1, runtime, "quantile: q must be in the range [0, 1] but got ", q, ".");
    const Tensor number = full(IntList(), q, input.dtype(), Device(DeviceType::cpu));
    return quantiles("quantile", input, number, dim, keepdim, interpolation, false);
  }
  return quantile(input, number_of_quantile("quantile", input, q), dim, keepdim, interpolation);
}
Tensor quantile_composite(const Tensor& input, const Tensor& q, MaybeInt dim, bool keepdim, Text interpolation) {
  return quantiles("quantile", input, q, dim, keepdim, interpolation, false);
}
Tensor nanquantile_scalar_composite(const Tensor& input, double q, MaybeInt dim, bool keepdim, Text interpolation) {
  return nanquantile(input, number_of_quantile("nanquantile", input, q), dim, keepdim, interpolation);
}
Tensor nanquantile_composite(const Tensor& input, const Tensor& q, MaybeInt dim, bool keepdim, Text interpolation) {
  return quantiles("nanquantile", input, q, dim, keepdim, interpolation, true);
}

}  // namespace vesta
