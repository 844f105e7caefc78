// Reductions. An extremum shares its gradient equally among equals; max and min along one dimension give it to the
// element whose index they returned. As in PyTorch.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <vector>

#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/keep_dims.h>
#include <vesta/autograd/rules/places.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

struct SumRule {
  Reduced shape;
  static SumRule save(const Tensor&, const Tensor& x, const MaybeDims& dim, bool, MaybeDType, Needs) {
    return {Reduced(x, dim, "sum")};
  }
  Tensor operator()(const Tensor& g, Needs) const { return shape.spread(g); }
};

struct MeanRule {
  Reduced shape;
  static MeanRule save(const Tensor&, const Tensor& x, const MaybeDims& dim, bool, MaybeDType, Needs) {
    return {Reduced(x, dim, "mean")};
  }
  Tensor operator()(const Tensor& g, Needs) const { return shape.spread(g / Scalar(double(shape.count()))); }
};

/// Computes a gradient of a pointwise op in one pass over memory, where nothing is recorded and the device has a
/// kernel; else undefined. All operands are of one real dtype.
Tensor in_one_pass(const PointwiseInfo& info, std::initializer_list<const Tensor*> operands) {
  constexpr double kNone[kMaxParams] = {};
  const bool plain = std::ranges::all_of(operands, [](const Tensor* t) { return is_float(t->dtype()); });
  if (layer_state.grad_enabled || !plain) return {};
  return pointwise_backward(info, 0, operands.begin(), int(operands.size()), kNone);
}

// d sum((x - m)^2) = 2 (x - m) dx, the mean m adding nothing; dm = dx / n.
struct MomentsRule {
  Reduced shape;
  Saved x, mean;
  static constexpr unsigned results = 0b11;
  static const char* known_op() { return "var"; }
  static MomentsRule save(const TensorPair& r, const Tensor& x, const MaybeDims& dim, bool, Needs) {
    return {Reduced(x, dim, "var"), Saved(x), Saved(clone(std::get<1>(r)))};  // the result is the user's to write
  }
  Tensor operator()(const GradList& g, Needs) const {
    Tensor r;
    if (g[0].defined()) {
      const Tensor given = mean(), input = x().to(given.dtype());  // anew where the gradient is recorded
      const Tensor center = layer_state.grad_enabled ? vesta::mean(input, shape.dims(), true) : shape.keep(given);
      const Tensor of_squares = shape.keep(g[0].to(given.dtype()));
      r = in_one_pass(ops::_squared_difference.info, {&of_squares, &input, &center});
      if (!r.defined()) r = of_squares * Scalar(2.0) * (input - center);
    }
    if (!g[1].defined()) return r;
    const Tensor even = shape.spread(g[1] / Scalar(double(shape.count())));
    return r.defined() ? r + even : even;
  }
};

struct SumOfSquaresRule {
  Reduced shape;
  Saved x;
  static const char* known_op() { return "norm"; }
  static SumOfSquaresRule save(const Tensor&, const Tensor& x, const MaybeDims& dim, bool, Needs) {
    return {Reduced(x, dim, "norm"), Saved(x)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    const Tensor of_sum = shape.keep(g), input = x().to(g.dtype());
    const Tensor r = in_one_pass(ops::square.info, {&of_sum, &input});
    return r.defined() ? r : of_sum * Scalar(2.0) * input;
  }
};

// The slope of log(sum(exp(x))) is softmax: _logsumexp_backward.
struct LogsumexpRule {
  Reduced shape;
  Saved x, y;
  static LogsumexpRule save(const Tensor& y, const Tensor& x, IntList dim, bool, Needs) {
    return {Reduced(x, MaybeDims{IntSpan(dim)}, "logsumexp"), Saved(x), Saved::result(y)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return _logsumexp_backward(shape.keep(g), x(), shape.keep(y()), shape.dims());
  }
};

struct CumsumRule {
  int64_t dim = 0;
  static CumsumRule save(const Tensor&, const Tensor&, int64_t dim, MaybeDType, Needs) { return {dim}; }
  Tensor operator()(const Tensor& g, Needs) const {  // element i has a part in the sums from i on
    return g.dim() == 0 ? g : _reverse_cumsum(g, dim);
  }
};

/// Returns whether a gradient of products is recorded, and a factor is zero. On a device, the host waits for the
/// answer.
bool is_recorded_with_zeros(const Tensor& input) {
  return layer_state.grad_enabled && has_values(input) && any(input == 0).item<bool>();
}

// Where the gradient itself is recorded and there are zeros, the second derivative there needs the form without
// division, x_0 ... x_(i-1) (g_i + x_(i+1) (g_(i+1) + ...)), a few ops per element.
struct CumprodRule {
  int64_t dim = 0;
  Saved x, y;
  static CumprodRule save(const Tensor& y, const Tensor& x, int64_t dim, MaybeDType, Needs) {
    return {dim, Saved(x), Saved::result(y)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    if (g.dim() == 0) return g;
    const Tensor input = x().to(g.dtype());
    if (is_recorded_with_zeros(input)) return without_division(g, input);
    return _cumprod_backward(g, input, y().to(g.dtype()), dim);
  }
  Tensor without_division(const Tensor& g, const Tensor& input) const {
    const int64_t d = wrap_dim(dim, g.dim(), "cumprod"), n = g.size(d);
    std::vector<Tensor> parts(static_cast<size_t>(n));
    Tensor behind;
    for (int64_t i = n - 1; i >= 0; --i) {
      const Tensor own = narrow(g, d, i, 1);
      behind = behind.defined() ? own + conj(narrow(input, d, i + 1, 1)) * behind : own;
      parts[size_t(i)] = behind;
    }
    const Tensor one = ones_like(narrow(input, d, 0, 1));
    const Tensor products = n > 1 ? cat({one, cumprod(narrow(input, d, 0, n - 1), d)}, d) : one;
    return conj(products) * cat(parts, d);
  }
};

// Where the gradient itself is recorded and there are zeros, the second derivative there needs the form without
// division: what comes before an element times what comes behind it.
struct ProductRule {
  int64_t dim = 0;
  bool keepdim = false;
  Saved x, y;
  static ProductRule save(const Tensor& y, const Tensor& x, int64_t dim, bool keepdim, MaybeDType, Needs) {
    return {dim, keepdim, Saved(x), Saved::result(y)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    const Tensor input = x().to(g.dtype());
    if (input.dim() == 0) return g;
    const int64_t d = wrap_dim(dim, input.dim(), "prod");
    const Tensor grad = keepdim ? g : unsqueeze(g, d);
    if (is_recorded_with_zeros(input)) return without_division(grad, input, d);
    return _prod_backward(grad, input, (keepdim ? y() : unsqueeze(y(), d)).to(g.dtype()), d);
  }
  static Tensor without_division(const Tensor& grad, const Tensor& input, int64_t d) {
    const int64_t n = input.size(d);
    const auto before = [&](const Tensor& t) {
      const Tensor one = ones_like(narrow(t, d, 0, 1));
      return n > 1 ? cat({one, cumprod(narrow(t, d, 0, n - 1), d)}, d) : one;
    };
    return grad * conj(before(input) * flip(before(flip(input, d)), d));
  }
};

struct LogcumsumexpRule {
  int64_t dim = 0;
  Saved x, y;
  static LogcumsumexpRule save(const Tensor& y, const Tensor& x, int64_t dim, Needs) {
    return {dim, Saved(x), Saved::result(y)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return g.dim() == 0 ? g : _logcumsumexp_backward(g, x(), y(), dim);
  }
};

struct RunningExtremumRule : PlacesRule {
  static RunningExtremumRule save(const TensorPair& r, const Tensor&, int64_t dim, Needs) {
    return {{dim, Saved(std::get<1>(r))}};
  }
};

struct ExtremumRule {
  Reduced shape;
  Saved x, y;
  static ExtremumRule save(const Tensor& y, const Tensor& x, const MaybeDims& dim, bool, Needs) {
    return {Reduced(x, dim, "amax"), Saved(x), Saved::result(y)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    if (shape.sizes.empty()) return g;
    const Tensor equal = _equals_extremum(x(), shape.keep(y()));  // where the extremum is NaN, the NaNs share it
    const int64_t most = equal.numel() / std::max<int64_t>(1, g.numel());
    if (equal.dtype() != DType::float16 || most <= 65504) {
      return _share_of_equals(equal, shape.keep(g), sum(equal, shape.dims(), true));
    }
    const Tensor counts = sum(equal, shape.dims(), true, DType::float32);  // float16 does not hold them
    return _share_of_equals(equal, shape.keep(g), counts).to(DType::float16);
  }
};

struct ExtremumAlongRule {
  Dims sizes;
  int64_t dim = 0;
  bool keepdim = false;
  Saved index;
  static constexpr unsigned results = 0b01;
  static ExtremumAlongRule save(const TensorPair& r, const Tensor& x, int64_t dim, bool keepdim, Needs) {
    return {Dims(x.sizes()), wrap_dim(dim, x.dim(), "max"), keepdim, Saved(std::get<1>(r))};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    if (sizes.empty()) return g[0];
    auto keep = [&](const Tensor& t) { return keepdim ? t : unsqueeze(t, dim); };
    Tensor r = zeros(sizes, g[0].dtype(), g[0].device());
    scatter_add_(r, dim, keep(index()), keep(g[0]));
    return r;
  }
};

}  // namespace

void register_reduce() {
  record<ops::sum_dim, SumRule>();
  record<ops::mean_dim, MeanRule>();
  record<ops::_moments, MomentsRule>();
  record<ops::_sum_of_squares, SumOfSquaresRule>();
  record<ops::logsumexp, LogsumexpRule>();
  record<ops::cumsum, CumsumRule>();
  record<ops::cumprod, CumprodRule>();
  record<ops::prod_dim_int, ProductRule>();
  record<ops::logcumsumexp, LogcumsumexpRule>();
  record<ops::cummax, RunningExtremumRule>();
  record<ops::cummin, RunningExtremumRule>();
  record<ops::amax, ExtremumRule>();
  record<ops::amin, ExtremumRule>();
  record<ops::max_dim, ExtremumAlongRule>();
  record<ops::min_dim, ExtremumAlongRule>();
}

}  // namespace vesta::autograd::rules
