// Resizing as a function.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/upsampling.h>

#include <vesta/nn/functional.h>
#include <vesta/nn/layers/vision.h>

namespace torch::nn::functional {

inline Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& o = {}) {
  vesta::nn::UpsampleOptions r;
  if (o.size()) r.size = vesta::nn::PerDimension<int64_t>(*o.size());
  if (o.scale_factor()) r.scale_factor = vesta::nn::PerDimension<double>(*o.scale_factor());
  r.mode = detail::word(o.mode());
  r.align_corners = o.align_corners();
  r.recompute_scale_factor = o.recompute_scale_factor();
  return vesta::nn::functional::interpolate(input, r, o.antialias());
}

}  // namespace torch::nn::functional
