// Dropout of elements and of channels as layers.
#pragma once
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// Defines a kind of dropout over its function.
#define TORCH_DROPOUT_LAYER(Name, function, FuncOptions)                                                          \
  class Name##Impl : public Cloneable<Name##Impl> {                                                               \
   public:                                                                                                        \
    TORCH_LAYER_OPTIONS(Name##Impl, DropoutOptions);                                                              \
    void reset() override { functional::detail::dropout_of(options); }                                            \
    Tensor forward(const Tensor& input) {                                                                         \
      const auto o = functional::FuncOptions().p(options.p()).training(is_training()).inplace(options.inplace()); \
      return functional::function(input, o);                                                                      \
    }                                                                                                             \
    TORCH_LAYER_TEXT(#Name, "p=", options.p(), ", inplace=", options.inplace())                                   \
  };                                                                                                              \
  TORCH_MODULE(Name)
TORCH_DROPOUT_LAYER(Dropout, dropout, DropoutFuncOptions);
TORCH_DROPOUT_LAYER(Dropout2d, dropout2d, Dropout2dFuncOptions);
TORCH_DROPOUT_LAYER(Dropout3d, dropout3d, Dropout3dFuncOptions);
TORCH_DROPOUT_LAYER(AlphaDropout, alpha_dropout, AlphaDropoutFuncOptions);
TORCH_DROPOUT_LAYER(FeatureAlphaDropout, feature_alpha_dropout, FeatureAlphaDropoutFuncOptions);
#undef TORCH_DROPOUT_LAYER

}  // namespace torch::nn
