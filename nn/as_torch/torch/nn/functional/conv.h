// Convolutions and their transposes as functions.
#pragma once
#include <variant>

#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/conv.h>

namespace torch::nn::functional {

/// Defines the convolution of D dimensions and the transposed one.
#define TORCH_CONVOLUTION(D)                                                                                       \
  inline Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& o = {}) {       \
    const auto stride = detail::list(o.stride()), dilation = detail::list(o.dilation());                           \
    if (const auto* sides = std::get_if<ExpandingArray<D>>(&o.padding())) {                                        \
      return vesta::conv##D##d(input, weight, o.bias(), stride, vesta::IntList(detail::list(*sides)), dilation,    \
                               o.groups());                                                                        \
    }                                                                                                              \
    const bool same = std::holds_alternative<enumtype::kSame>(o.padding());                                        \
    return vesta::conv##D##d(input, weight, o.bias(), stride, vesta::TextOnly(same ? "same" : "valid"), dilation,  \
                             o.groups());                                                                          \
  }                                                                                                                \
  inline Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                                    \
                                     const ConvTranspose##D##dFuncOptions& o = {}) {                               \
    return vesta::conv_transpose##D##d(input, weight, o.bias(), detail::list(o.stride()),                          \
                                       detail::list(o.padding()), detail::list(o.output_padding()), o.groups(),    \
                                       detail::list(o.dilation()));                                                \
  }
TORCH_CONVOLUTION(1)
TORCH_CONVOLUTION(2)
TORCH_CONVOLUTION(3)
#undef TORCH_CONVOLUTION

}  // namespace torch::nn::functional
