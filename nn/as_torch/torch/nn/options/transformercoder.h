// Options of stacks of a transformer's layers.
#pragma once
#include <utility>

#include <torch/nn/any.h>
#include <torch/nn/modules/transformerlayer.h>

namespace torch::nn {

/// Defines the options of a stack of copies of `Layer`.
#define TORCH_TRANSFORMER_CODER_OPTIONS(Name, Layer, layer)                                                     \
  struct Name {                                                                                                 \
    Name(Layer layer, int64_t num_layers) : layer##_(std::move(layer)), num_layers_(num_layers) {}              \
    Name(const Layer##Options& layer##_options, int64_t num_layers) : Name(Layer(layer##_options), num_layers) {} \
    TORCH_ARG(Layer, layer) = nullptr;                                                                          \
    TORCH_ARG(int64_t, num_layers);                                                                             \
    TORCH_ARG(AnyModule, norm) = {};                                                                            \
  }
TORCH_TRANSFORMER_CODER_OPTIONS(TransformerEncoderOptions, TransformerEncoderLayer, encoder_layer);
TORCH_TRANSFORMER_CODER_OPTIONS(TransformerDecoderOptions, TransformerDecoderLayer, decoder_layer);
#undef TORCH_TRANSFORMER_CODER_OPTIONS

}  // namespace torch::nn
