// Options of the layers of transformers.
#pragma once
#include <functional>
#include <variant>

#include <torch/types.h>

namespace torch::nn {

using activation_t = std::variant<enumtype::kReLU, enumtype::kGELU, std::function<Tensor(const Tensor&)>>;

/// Defines the options of a layer of the encoder or the decoder.
#define TORCH_TRANSFORMER_LAYER_OPTIONS(Name)                                        \
  struct Name {                                                                      \
    Name(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}       \
    TORCH_ARG(int64_t, d_model);                                                     \
    TORCH_ARG(int64_t, nhead);                                                       \
    TORCH_ARG(int64_t, dim_feedforward) = 2048;                                      \
    TORCH_ARG(double, dropout) = 0.1;                                                \
    TORCH_ARG(activation_t, activation) = torch::kReLU;                              \
  }
TORCH_TRANSFORMER_LAYER_OPTIONS(TransformerEncoderLayerOptions);
TORCH_TRANSFORMER_LAYER_OPTIONS(TransformerDecoderLayerOptions);
#undef TORCH_TRANSFORMER_LAYER_OPTIONS

}  // namespace torch::nn
