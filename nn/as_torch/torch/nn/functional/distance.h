// Distances as functions.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/distance.h>

namespace torch::nn::functional {

inline Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& o = {}) {
  return vesta::cosine_similarity(x1, x2, o.dim(), o.eps());
}
inline Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o = {}) {
  return vesta::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}
inline Tensor pdist(const Tensor& input, double p = 2) { return vesta::pdist(input, p); }

}  // namespace torch::nn::functional
