// Instance normalisation as a function.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/instancenorm.h>

namespace torch::nn::functional {

inline Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o = {}) {
  return vesta::instance_norm(input, o.weight(), o.bias(), o.running_mean(), o.running_var(), o.use_input_stats(),
                              o.momentum(), o.eps(), false);
}

}  // namespace torch::nn::functional
