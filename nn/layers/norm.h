// Normalisation of each sample by itself.
#pragma once
#include <vector>

#include <vesta/nn/module.h>

namespace vesta::nn {

struct LayerNormOptions {
  std::vector<int64_t> normalized_shape;
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;  // with elementwise_affine: whether a bias is learnt beside the weight
  DType dtype = DType::float32;
};
/// The module that brings the last dimensions [*, normalized_shape] to mean 0 and variance 1, times weight, plus bias
/// (Ba et al. 2016).
class VESTA_API LayerNorm : public Module {
 public:
  explicit LayerNorm(LayerNormOptions options);
  explicit LayerNorm(int64_t size) : LayerNorm(LayerNormOptions{{size}}) {}
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "LayerNorm"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override;
  const LayerNormOptions options;
  Tensor weight, bias;  // of normalized_shape, or undefined
};

}  // namespace vesta::nn
