// Channels turned into pixels and back.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/pixelshuffle.h>

namespace torch::nn::functional {

inline Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& o) {
  return vesta::pixel_shuffle(input, o.upscale_factor());
}
inline Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& o) {
  return vesta::pixel_unshuffle(input, o.downscale_factor());
}

}  // namespace torch::nn::functional
