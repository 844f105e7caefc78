// Linear and bilinear maps as functions.
#pragma once
#include <torch/nn/functional/arguments.h>

namespace torch::nn::functional {

inline Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {}) {
  return vesta::linear(input, weight, bias);
}
inline Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {}) {
  return vesta::bilinear(input1, input2, weight, bias);
}

}  // namespace torch::nn::functional
