// Normalisation: batch, layer, root mean square and group (Ioffe and Szegedy 2015, Ba et al. 2016, Zhang and Sennrich
// 2019, Wu and He 2018).
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/norm_backward.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

struct BatchNormRule {
  Saved input, weight, mean, invstd;
  bool training = false;
  static constexpr unsigned results = 0b001;
  static BatchNormRule save(const TensorTriple& r, const Tensor& input, const Tensor& weight, const Tensor&,
                            const Tensor& running_mean, const Tensor& running_var, bool training, double, double eps,
                            Needs) {
    if (training) return {Saved(input), Saved(weight), Saved(std::get<1>(r)), Saved(std::get<2>(r)), training};
    NoGrad off;  // copies: a later pass in training may write the running statistics
    const DType stats = std::get<1>(r).dtype();
    const Tensor deviation = rsqrt(running_var.to(DType::float64) + Scalar(eps));
    return {Saved(input), Saved(weight), Saved(clone(running_mean).to(stats)), Saved(deviation.to(stats)), training};
  }
  static BatchNormRule save(const TensorTriple& r, const Tensor& input, const Tensor& weight, const Tensor&,
                            const Tensor&, const Tensor&, double, Needs) {
    return {Saved(input), Saved(weight), Saved(std::get<1>(r)), Saved(std::get<2>(r)), false};
  }
  Grads<3> operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    auto [x, w, b] = _batch_norm_backward(g[0], input(), weight(), mean(), invstd(), training);
    return {x, w, b};
  }
  static bool takes(const PointwiseInfo& activation) { return number_of_activation(&activation) >= 0; }
  Grads<3> operator()(const PendingGradient& g, Needs) const {
    auto [x, w, b] = _batch_norm_activation_backward(g.grad, g.used, number_of_activation(g.info), g.params[0],
                                                     g.params[1], input(), weight(), mean(), invstd(), training);
    return {x, w, b};
  }
};

struct LayerNormRule {
  Saved input, weight, mean, rstd;
  Dims shape;
  static constexpr unsigned results = 0b001;
  static LayerNormRule save(const TensorTriple& r, const Tensor& input, IntList normalized_shape, const Tensor& weight,
                            const Tensor&, double, Needs) {
    return {Saved(input), Saved(weight), Saved(std::get<1>(r)), Saved(std::get<2>(r)), Dims(normalized_shape)};
  }
  Grads<3> operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    auto [x, w, b] = _layer_norm_backward(g[0], input(), shape, weight(), mean(), rstd());
    return {x, w, b};
  }
};

struct RmsNormRule {
  Saved input, weight, rstd;
  Dims shape;
  static constexpr unsigned results = 0b01;
  static RmsNormRule save(const TensorPair& r, const Tensor& input, IntList normalized_shape, const Tensor& weight,
                          MaybeDouble, Needs) {
    return {Saved(input), Saved(weight), Saved(std::get<1>(r)), Dims(normalized_shape)};
  }
  Grads<2> operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    auto [x, w] = _rms_norm_backward(g[0], input(), shape, weight(), rstd());
    return {x, w};
  }
};

struct GroupNormRule {
  Saved input, weight, mean, rstd;
  int64_t n = 0, c = 0, hxw = 0, group = 0;
  static constexpr unsigned results = 0b111;
  static GroupNormRule save(const TensorTriple& r, const Tensor& input, const Tensor& weight, const Tensor&, int64_t n,
                            int64_t c, int64_t hxw, int64_t group, double, Needs) {
    // detached: the rule computes them anew where it is differentiated
    return {Saved(input), Saved(weight), Saved(std::get<1>(r).detach()), Saved(std::get<2>(r).detach()), n, c,
            hxw,          group};
  }
  Grads<3> operator()(const GradList& g, Needs needs) const {
    Tensor x, w, b;
    if (g[0].defined()) {
      std::tie(x, w, b) = _group_norm_backward(g[0], input(), weight(), mean(), rstd(), n, c, hxw, group);
    }
    if (needs[0] && (g[1].defined() || g[2].defined())) {
      const Tensor more = of_statistics(g[1], g[2]);
      x = x.defined() ? x + more : more;
    }
    return {x, w, b};
  }
  /// dx of mean(x) and of rstd = (var(x) + eps)^(-1/2), whose slope is -rstd^3 (x - mean) / count.
  Tensor of_statistics(const Tensor& of_mean, const Tensor& of_rstd) const {
    const Dims rows{n, group, c / group * hxw}, column{n, group, 1};
    const Tensor x = reshape(input().to(mean().dtype()), rows), deviation = x - vesta::mean(x, Dims{2}, true);
    const Tensor variance = vesta::mean(square(deviation), Dims{2}, true);
    const Tensor eps = (reciprocal(square(reshape(rstd(), column))) - variance).detach(), scale = rsqrt(variance + eps);
    Tensor r = zeros_like(x);
    if (of_mean.defined()) r = r + reshape(of_mean, column);
    if (of_rstd.defined()) r = r - reshape(of_rstd, column) * scale * scale * scale * deviation;
    return reshape(r * Scalar(double(group) / double(c * hxw)), input().sizes()).to(input().dtype());
  }
};

/// The same in terms of ops. In training the statistics are functions of the input, so they are computed anew; eps is
/// what the given invstd has beyond the variance.
TensorTriple batch_norm_backward_formula(const Tensor& g, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                         const Tensor& invstd, bool training) {
  Dims others, channel(size_t(input.dim()), 1);
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) others.push_back(d);
  }
  channel[1] = input.size(1);
  Tensor x = input.to(mean.dtype()), grad = g.to(mean.dtype());
  Tensor center = view(mean, channel), scale = view(invstd, channel);
  if (training) {
    center = vesta::mean(x, others, true);
    Tensor variance = vesta::mean(square(x - center), others, true);
    Tensor eps = (reciprocal(square(scale)) - variance).detach();
    scale = reciprocal(sqrt(variance + eps));
  }
  Tensor normal = (x - center) * scale;
  Tensor of_bias = sum(grad, others), of_weight = sum(grad * normal, others);
  Tensor of_input = grad;
  if (training) {
    of_input = grad - vesta::mean(grad, others, true) - normal * vesta::mean(grad * normal, others, true);
  }
  of_input = of_input * scale;
  if (weight.defined()) of_input = of_input * view(weight, channel);
  return {of_input, of_weight, of_bias};
}

struct UnitVectorsRule {
  int64_t dim = 0;
  double eps = 0;
  bool raises_value = false;
  Saved input, size;
  static constexpr unsigned results = 0b01;
  static UnitVectorsRule save(const TensorPair& r, const Tensor& input, int64_t dim, double eps, bool raises_value,
                              Needs) {
    return {dim, eps, raises_value, Saved(input), Saved(std::get<1>(r))};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return _unit_vectors_backward(g[0], input(), size(), dim, eps, raises_value);
  }
};

}  // namespace

void register_norm() {
  record<ops::native_batch_norm, BatchNormRule>();
  record<ops::_batch_norm_evaluation, BatchNormRule>();
  record<ops::native_layer_norm, LayerNormRule>();
  record<ops::_fused_rms_norm, RmsNormRule>();
  record<ops::native_group_norm, GroupNormRule>();
  record<ops::_unit_vectors, UnitVectorsRule>();
  record_composite<ops::_batch_norm_backward, &batch_norm_backward_formula>();
}

}  // namespace vesta::autograd::rules
