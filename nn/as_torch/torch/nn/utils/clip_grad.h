// Clipping of gradients before an optimizer's step.
#pragma once
#include <initializer_list>
#include <vector>

#include <torch/types.h>

#include <vesta/nn/utils/clip_grad.h>

namespace torch::nn::utils {

/// Scales all gradients in place so that their norm, as one vector's, is at most max_norm; returns the norm before.
/// Error: it is NaN or infinite and `error_if_nonfinite`.
inline double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                              bool error_if_nonfinite = false) {
  return vesta::nn::utils::clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite).item<double>();
}
inline double clip_grad_norm_(std::initializer_list<Tensor> parameters, double max_norm, double norm_type = 2.0,
                              bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::vector<Tensor>(parameters), max_norm, norm_type, error_if_nonfinite);
}
inline double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0,
                              bool error_if_nonfinite = false) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

/// Clamps all elements of gradients in place to [-clip_value, clip_value].
inline void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  vesta::nn::utils::clip_grad_value_(parameters, clip_value);
}
inline void clip_grad_value_(std::initializer_list<Tensor> parameters, double clip_value) {
  clip_grad_value_(std::vector<Tensor>(parameters), clip_value);
}
inline void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}

}  // namespace torch::nn::utils
