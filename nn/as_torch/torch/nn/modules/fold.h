// Windows of images as columns, and back, as layers.
#pragma once
#include <torch/nn/functional/fold.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

TORCH_PLAIN_LAYER(Fold, FoldOptions, functional::fold(input, options), "output_size=", options.output_size(),
                  ", kernel_size=", options.kernel_size(), ", dilation=", options.dilation(),
                  ", padding=", options.padding(), ", stride=", options.stride());
TORCH_PLAIN_LAYER(Unfold, UnfoldOptions, functional::unfold(input, options), "kernel_size=", options.kernel_size(),
                  ", dilation=", options.dilation(), ", padding=", options.padding(), ", stride=", options.stride());

}  // namespace torch::nn
