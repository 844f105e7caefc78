// Channels turned into pixels and back, as layers.
#pragma once
#include <torch/nn/functional/pixelshuffle.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

TORCH_PLAIN_LAYER(PixelShuffle, PixelShuffleOptions, functional::pixel_shuffle(input, options),
                  "upscale_factor=", options.upscale_factor());
TORCH_PLAIN_LAYER(PixelUnshuffle, PixelUnshuffleOptions, functional::pixel_unshuffle(input, options),
                  "downscale_factor=", options.downscale_factor());

}  // namespace torch::nn
