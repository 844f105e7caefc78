#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>
#include <vesta/nn/layers/adaptive.h>

#include <algorithm>
#include <cmath>

namespace vesta::nn {
namespace {

AdaptiveLogSoftmaxWithLossOptions checked(AdaptiveLogSoftmaxWithLossOptions o) {
  const std::vector<int64_t>& c = o.cutoffs.v;
  VESTA_CHECK(!c.empty(), value, "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of length larger than 0");
  const bool rises = std::ranges::adjacent_find(c, std::ranges::greater_equal()) == c.end();
  VESTA_CHECK(rises && c.front() > 0 && c.back() <= o.n_classes - 1, value,
              "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive integers sorted in an "
              "increasing order, where each value is between 1 and n_classes-1");
  VESTA_CHECK(o.div_value > 0, value, "AdaptiveLogSoftmaxWithLoss: expected div_value > 0, got ", o.div_value,
              " (div_value).");
  return o;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(Options o) : LayerOf(checked(std::move(o))) {
  const size_t clusters = options.cutoffs.v.size();
  const auto linear = [&](int64_t from, int64_t to, bool bias) {
    return make<Linear>(LinearOptions{.in_features = from, .out_features = to, .bias = bias, .dtype = options.dtype});
  };
  head = register_module("head", linear(options.in_features, cutoff(0) + int64_t(clusters), options.head_bias));
  tail = register_module("tail", make<ModuleList>());
  for (size_t i = 0; i < clusters; ++i) {
    const auto hidden = int64_t(std::floor(double(options.in_features) / std::pow(options.div_value, double(i + 1))));
    tail->push_back(make<Sequential>(std::initializer_list<std::shared_ptr<Module>>{
        linear(options.in_features, hidden, false), linear(hidden, cutoff(i + 1) - cutoff(i), false)}));
  }
}

void AdaptiveLogSoftmaxWithLoss::reset_parameters() {
  head->reset_parameters();
  for (const auto& [name, cluster] : tail->named_children()) {
    for (const auto& [place, layer] : cluster->named_children()) layer->as<Linear>().reset_parameters();
  }
}

TensorPair AdaptiveLogSoftmaxWithLoss::forward(const Tensor& given, const Tensor& wanted) {
  const int64_t dims = wanted.dim();
  VESTA_CHECK(dims <= 1, runtime,
              "AdaptiveLogSoftmaxWithLoss: 0D or 1D target tensor expected, multi-target not supported");
  VESTA_CHECK(given.dim() == dims + 1, runtime, "AdaptiveLogSoftmaxWithLoss: ", dims, "D target tensor expects ",
              dims + 1, "D input tensors, but found inputs with size ", given.sizes());
  VESTA_CHECK(dims == 0 || given.size(0) == wanted.size(0), runtime,
              "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in the batch dimension.");
  const Tensor input = dims ? given : unsqueeze(given, 0), target = dims ? wanted : unsqueeze(wanted, 0);
  if (target.numel()) {
    const auto low = min(target).item<int64_t>(), high = max(target).item<int64_t>();
    VESTA_CHECK(low >= 0 && high < options.n_classes, runtime,
                "AdaptiveLogSoftmaxWithLoss: Target values should be in ", "[0, ", options.n_classes - 1,
                "], but values in range [", low, ", ", high, "] were found.");
  }
  Tensor output = zeros({target.size(0)}, input.dtype(), input.device()), entries = vesta::clone(target);
  for (size_t i = 0; i < tail->size(); ++i) {
    const Tensor inside = logical_and(ge(target, cutoff(i)), lt(target, cutoff(i + 1)));
    const Tensor rows = squeeze(nonzero(inside), 1);
    if (rows.numel() == 0) continue;
    const Tensor logs = log_softmax((*tail)[i](index_select(input, 0, rows)), 1);
    const Tensor places = unsqueeze(sub(index_select(target, 0, rows), cutoff(i)), 1);
    output = index_add(output, 0, rows, squeeze(gather(logs, 1, places), 1));
    entries = index_fill(entries, 0, rows, cutoff(0) + int64_t(i));
  }
  output = add(output, squeeze(gather(log_softmax((*head)(input), 1), 1, unsqueeze(entries, 1)), 1));
  return {dims ? output : squeeze(output, 0), mean(neg(output))};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input) {
  return in_context([&] {
    const Tensor first = log_softmax((*head)(input), 1);
    std::vector<Tensor> parts{narrow(first, 1, 0, cutoff(0))};
    for (size_t i = 0; i < tail->size(); ++i) {
      parts.push_back(add(log_softmax((*tail)[i](input), 1), narrow(first, 1, cutoff(0) + int64_t(i), 1)));
    }
    return cat(parts, 1);
  });
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input) {
  return in_context([&] {
    const Tensor best = argmax((*head)(input), 1);
    const Tensor rare = squeeze(nonzero(ge(best, cutoff(0))), 1);
    if (rare.numel() == 0) return best;
    // the head alone cannot tell which class of a cluster it is
    return index_copy(best, 0, rare, argmax(log_prob(index_select(input, 0, rare)), 1));
  });
}

}  // namespace vesta::nn
