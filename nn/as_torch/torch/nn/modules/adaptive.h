// The adaptive softmax as a layer.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <torch/nn/containers.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/options/adaptive.h>

namespace torch::nn {

/// The log-probability of each target, and the mean of their negatives.
struct ASMoutput {
  ASMoutput(Tensor output_, double loss_) : output(std::move(output_)), loss(loss_) {}
  Tensor output;
  double loss;
};

/// The negative log-likelihood of classes in clusters by frequency (Grave et al. 2017). The first cutoffs[0] classes
/// and one entry for each cluster are in the head; a cluster is a softmax of its own.
class AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  TORCH_LAYER_OPTIONS(AdaptiveLogSoftmaxWithLossImpl, AdaptiveLogSoftmaxWithLossOptions);
  void reset() override {
    cutoffs = options.cutoffs();
    const bool rises = std::ranges::adjacent_find(cutoffs, std::ranges::greater_equal()) == cutoffs.end();
    TORCH_CHECK(!cutoffs.empty() && rises && cutoffs.front() > 0 && cutoffs.back() <= options.n_classes() - 1,
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1");
    cutoffs.push_back(options.n_classes());
    shortlist_size = cutoffs[0];
    n_clusters = int64_t(cutoffs.size()) - 1;
    head_size = shortlist_size + n_clusters;
    const int64_t width = options.in_features();
    head = register_module("head", Linear(LinearOptions(width, head_size).bias(options.head_bias())));
    tail = register_module("tail", ModuleList());
    for (int64_t i = 0; i < n_clusters; ++i) {
      const auto hidden = int64_t(std::floor(double(width) / std::pow(options.div_value(), double(i + 1))));
      tail->push_back(Sequential(Linear(LinearOptions(width, hidden).bias(false)),
                                 Linear(LinearOptions(hidden, cutoffs[i + 1] - cutoffs[i]).bias(false))));
    }
  }
  void reset_parameters() {
    head->reset_parameters();
    for (const auto& layer : tail->modules(false)) {
      if (auto* linear = layer->as<LinearImpl>()) linear->reset_parameters();
    }
  }
  ASMoutput forward(const Tensor& given, const Tensor& wanted) {
    const bool batched = wanted.dim() == 1;
    TORCH_CHECK(wanted.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
    TORCH_CHECK(given.dim() == wanted.dim() + 1, wanted.dim(), "D target tensor expects ", wanted.dim() + 1,
                "D input tensors, but found inputs with sizes ", given.sizes());
    const Tensor input = batched ? given : vesta::unsqueeze(given, 0);
    const Tensor target = batched ? wanted : vesta::unsqueeze(wanted, 0);
    TORCH_CHECK(input.size(0) == target.size(0), "Input and target should have the same size in the batch dimension.");
    Tensor entries = vesta::clone(target), output = vesta::zeros({target.size(0)}, input.dtype(), input.device());
    int64_t used = vesta::sum(rows_of(target, 0, shortlist_size)).item<int64_t>();
    for (int64_t i = 0; i < n_clusters; ++i) {
      const Tensor rows = vesta::squeeze(vesta::nonzero(rows_of(target, cutoffs[i], cutoffs[i + 1])), 1);
      used += rows.numel();
      if (rows.numel() == 0) continue;
      const Tensor logs = cluster(i, vesta::index_select(input, 0, rows));
      const Tensor places = vesta::unsqueeze(vesta::sub(vesta::index_select(target, 0, rows), cutoffs[i]), 1);
      output = vesta::index_add(output, 0, rows, vesta::squeeze(vesta::gather(logs, 1, places), 1));
      entries = vesta::index_fill(entries, 0, rows, shortlist_size + i);
    }
    TORCH_CHECK(used == target.size(0), "Target values should be in [0, ", options.n_classes() - 1,
                "], but others were found.");
    const Tensor first = vesta::log_softmax(head(input), 1);
    output = vesta::add(output, vesta::squeeze(vesta::gather(first, 1, vesta::unsqueeze(entries, 1)), 1));
    const double loss = vesta::neg(vesta::mean(output)).item<double>();
    return {batched ? output : vesta::squeeze(output, 0), loss};
  }
  /// Returns the log-probabilities of all classes, given the head's result.
  Tensor _get_full_log_prob(const Tensor& input, const Tensor& head_output) {
    const Tensor first = vesta::log_softmax(head_output, 1);
    std::vector<Tensor> parts{vesta::narrow(first, 1, 0, shortlist_size)};
    for (int64_t i = 0; i < n_clusters; ++i) {
      parts.push_back(vesta::add(cluster(i, input), vesta::narrow(first, 1, shortlist_size + i, 1)));
    }
    return vesta::cat(parts, 1);
  }
  /// Returns the log-probabilities of all classes [N, n_classes].
  Tensor log_prob(const Tensor& input) { return _get_full_log_prob(input, head(input)); }
  /// Returns the most probable class [N].
  Tensor predict(const Tensor& input) {
    const Tensor scores = head(input), best = vesta::argmax(scores, 1);
    const Tensor rare = vesta::squeeze(vesta::nonzero(vesta::ge(best, shortlist_size)), 1);
    if (rare.numel() == 0) return best;
    const Tensor all = _get_full_log_prob(vesta::index_select(input, 0, rare), vesta::index_select(scores, 0, rare));
    return vesta::index_copy(best, 0, rare, vesta::argmax(all, 1));
  }
  TORCH_LAYER_TEXT("AdaptiveLogSoftmaxWithLoss")

  std::vector<int64_t> cutoffs;
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head = nullptr;
  ModuleList tail;

 private:
  static Tensor rows_of(const Tensor& target, int64_t first, int64_t end) {
    return vesta::logical_and(vesta::ge(target, first), vesta::lt(target, end));
  }
  Tensor cluster(int64_t i, const Tensor& input) {
    return vesta::log_softmax(tail[size_t(i)]->template as<SequentialImpl>()->forward(input), 1);
  }
};
TORCH_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace torch::nn
