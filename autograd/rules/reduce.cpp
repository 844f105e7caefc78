// Reductions. An extremum shares its gradient equally among equals; max and min along one dimension give it to the
// element whose index they returned. As in PyTorch.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/keep_dims.h>
#include <vesta/autograd/rules/places.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/ops.h>

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

struct CumsumRule {
  int64_t dim = 0;
  static CumsumRule save(const Tensor&, const Tensor&, int64_t dim, MaybeDType, Needs) { return {dim}; }
  Tensor operator()(const Tensor& g, Needs) const {  // element i has a part in the sums from i on
    return g.dim() == 0 ? g : flip(cumsum(flip(g, dim), dim), dim);
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
    Tensor equal = x() == shape.keep(y());
    Dims dims;
    for (size_t d = 0; d < shape.sizes.size(); ++d) {
      if (shape.reduces(d)) dims.push_back(int64_t(d));
    }
    return where(equal, shape.keep(g) / sum(equal, dims, true), wrapped(0.0));
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
    auto keep = [&](const Tensor& t) { return keepdim ? t : t.unsqueeze(dim); };
    Tensor r = zeros(sizes, g[0].dtype(), g[0].device());
    r.scatter_add_(dim, keep(index()), keep(g[0]));
    return r;
  }
};

}  // namespace

void register_reduce() {
  record<ops::sum_dim, SumRule>();
  record<ops::mean_dim, MeanRule>();
  record<ops::cumsum, CumsumRule>();
  record<ops::cummax, RunningExtremumRule>();
  record<ops::cummin, RunningExtremumRule>();
  record<ops::amax, ExtremumRule>();
  record<ops::amin, ExtremumRule>();
  record<ops::max_dim, ExtremumAlongRule>();
  record<ops::min_dim, ExtremumAlongRule>();
}

}  // namespace vesta::autograd::rules
