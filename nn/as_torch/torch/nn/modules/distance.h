// Distances as layers.
#pragma once
#include <torch/nn/functional/distance.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

class CosineSimilarityImpl : public detail::PlainLayer<CosineSimilarityImpl, CosineSimilarityOptions> {
 public:
  using PlainLayer::PlainLayer;
  Tensor forward(const Tensor& x1, const Tensor& x2) { return functional::cosine_similarity(x1, x2, options); }
  TORCH_LAYER_TEXT("CosineSimilarity", "dim=", options.dim(), ", eps=", options.eps())
};
TORCH_MODULE(CosineSimilarity);

class PairwiseDistanceImpl : public detail::PlainLayer<PairwiseDistanceImpl, PairwiseDistanceOptions> {
 public:
  using PlainLayer::PlainLayer;
  Tensor forward(const Tensor& x1, const Tensor& x2) { return functional::pairwise_distance(x1, x2, options); }
  TORCH_LAYER_TEXT("PairwiseDistance", "p=", options.p(), ", eps=", options.eps(), ", keepdim=", options.keepdim())
};
TORCH_MODULE(PairwiseDistance);

}  // namespace torch::nn
