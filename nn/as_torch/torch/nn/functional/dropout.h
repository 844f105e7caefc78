// Dropout of elements and of channels as functions.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/dropout.h>

#include <vesta/nn/layers/dropout.h>

namespace torch::nn::functional {

namespace detail {
/// Returns options of a dropout that Vesta's functions take.
template <class Options>
vesta::nn::DropoutOptions dropout_of(const Options& o) {
  TORCH_CHECK(o.p() >= 0 && o.p() <= 1, "dropout probability has to be between 0 and 1, but got ", o.p());
  return {.p = o.p(), .inplace = o.inplace()};
}
}  // namespace detail

inline Tensor dropout(const Tensor& input, const DropoutFuncOptions& o = {}) {
  return vesta::nn::detail::dropped(input, detail::dropout_of(o), o.training());
}
inline Tensor dropout2d(const Tensor& input, const Dropout2dFuncOptions& o = {}) {
  return vesta::nn::detail::dropped_channels("dropout2d", input, 0, detail::dropout_of(o), o.training());
}
inline Tensor dropout3d(const Tensor& input, const Dropout3dFuncOptions& o = {}) {
  return vesta::nn::detail::dropped_channels("dropout3d", input, 0, detail::dropout_of(o), o.training());
}
inline Tensor alpha_dropout(const Tensor& input, const AlphaDropoutFuncOptions& o = {}) {
  return vesta::nn::detail::alpha_dropped("alpha_dropout", input, false, detail::dropout_of(o), o.training());
}
inline Tensor feature_alpha_dropout(const Tensor& input, const FeatureAlphaDropoutFuncOptions& o = {}) {
  return vesta::nn::detail::alpha_dropped("feature_alpha_dropout", input, true, detail::dropout_of(o), o.training());
}

}  // namespace torch::nn::functional
