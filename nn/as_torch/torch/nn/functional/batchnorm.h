// Batch normalisation as a function.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/batchnorm.h>

namespace torch::nn::functional {

inline Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                         const BatchNormFuncOptions& o = {}) {
  TORCH_CHECK(input.dim() >= 2, "Expected at least 2 input dimensions, but got ", input.dim());
  TORCH_CHECK(!o.training() || input.numel() != input.size(1),
              "Expected more than 1 value per channel when training, got input size ", input.sizes());
  return vesta::batch_norm(input, running_mean, running_var, o.weight(), o.bias(), o.training(), o.momentum(), o.eps());
}

}  // namespace torch::nn::functional
