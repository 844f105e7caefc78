// vesta::nn::functional: the mathematics of layers under the names that PyTorch's torch.nn.functional has.
#pragma once
#include <vesta/core/ops/ops.h>

namespace vesta::nn::functional {

using vesta::batch_norm;
using vesta::binary_cross_entropy_with_logits;
using vesta::conv2d;
using vesta::cross_entropy;
using vesta::dropout;
using vesta::gelu;
using vesta::layer_norm;
using vesta::leaky_relu;
using vesta::linear;
using vesta::log_softmax;
using vesta::logsigmoid;
using vesta::max_pool2d;
using vesta::mse_loss;
using vesta::nll_loss;
using vesta::normalize;
using vesta::relu;
using vesta::sigmoid;
using vesta::softmax;
using vesta::softplus;
using vesta::tanh;

/// Looks up rows of `weight` [num, dim] by `input` (int64, any shape *); gives [*, dim]. The row `padding_idx`, if
/// given, gets no gradient.
VESTA_API Tensor embedding(const Tensor& input, const Tensor& weight, MaybeInt padding_idx = {});

}  // namespace vesta::nn::functional
