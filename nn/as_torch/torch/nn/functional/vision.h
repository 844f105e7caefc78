// Sampling at the points of a grid as functions.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/vision.h>

namespace torch::nn::functional {

inline Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false) {
  return vesta::affine_grid_generator(theta, vesta::IntSpan(size.data(), size.size()), align_corners);
}
inline Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& o = {}) {
  // The tags of both options stand in the order of the op's numbers.
  return vesta::grid_sampler(input, grid, int64_t(o.mode().index()), int64_t(o.padding_mode().index()),
                             o.align_corners().value_or(false));
}

}  // namespace torch::nn::functional
