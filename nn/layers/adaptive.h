// The adaptive softmax.
#pragma once
#include <vesta/nn/layers/container.h>
#include <vesta/nn/layers/linear.h>

namespace vesta::nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  static constexpr size_t required = 3;
  int64_t in_features, n_classes;
  Shape cutoffs;  // where clusters begin, increasing
  double div_value = 4;  // cluster i has in_features / div_value ** (i + 1) hidden features
  bool head_bias = false;
  DType dtype = DType::float32;
  VESTA_FIELDS(in_features, n_classes, cutoffs, div_value, head_bias)
  static constexpr std::string_view shown = "";
};
/// The negative log-likelihood of classes in clusters by frequency: rare ones get less memory and time (Grave et al.
/// 2017). Classes are numbered by frequency. The first cutoffs[0] and one entry for each further cluster are in the
/// head; a cluster is a softmax of its own.
class VESTA_API AdaptiveLogSoftmaxWithLoss
    : public LayerOf<AdaptiveLogSoftmaxWithLoss, AdaptiveLogSoftmaxWithLossOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(AdaptiveLogSoftmaxWithLoss)
  /// Returns the log-probability of each target, and the mean of their negatives. Input [N, in_features] or
  /// [in_features], target [N] or [].
  TensorPair forward(const Tensor& input, const Tensor& target);
  /// Returns the log-probabilities of all classes [N, n_classes].
  Tensor log_prob(const Tensor& input);
  /// Returns the most probable class [N].
  Tensor predict(const Tensor& input);
  void reset_parameters();

  std::shared_ptr<Linear> head;
  std::shared_ptr<ModuleList> tail;

 private:
  /// Returns the first class of cluster i, which is the end of the cluster before it.
  int64_t cutoff(size_t i) const { return i < options.cutoffs.v.size() ? options.cutoffs.v[i] : options.n_classes; }
};

}  // namespace vesta::nn
