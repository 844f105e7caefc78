// Normalisation over dimensions, groups and channels of one example as functions.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/normalization.h>

#include <vesta/nn/layers/norm.h>

namespace torch::nn::functional {

inline Tensor normalize(const Tensor& input, const NormalizeFuncOptions& o = {}) {
  const Tensor y = vesta::normalize(input, o.p(), o.dim(), o.eps());
  return o.out() ? vesta::copy_(*o.out(), y) : y;
}
inline Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& o) {
  return vesta::layer_norm(input, o.normalized_shape(), o.weight(), o.bias(), o.eps());
}
inline Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& o) {
  return vesta::group_norm(input, o.num_groups(), o.weight(), o.bias(), o.eps());
}
inline Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& o) {
  return vesta::nn::LocalResponseNorm(o.size(), o.alpha(), o.beta(), o.k()).forward(input);
}

}  // namespace torch::nn::functional
