// Stacks of a transformer's layers.
#pragma once
#include <torch/nn/containers.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/nn/options/transformercoder.h>

namespace torch::nn {
namespace detail {

/// A stack of copies of a layer, all of which begin with its values, and a normalisation behind them, if there is one.
template <class Self, class Options, class LayerImpl>
class TransformerCoder : public Cloneable<Self> {
 public:
  explicit TransformerCoder(const Options& given) : options(given) { TransformerCoder::reset(); }
  template <class... A>
    requires OptionsFrom<Options, A...>
  explicit TransformerCoder(A&&... arguments) : TransformerCoder(Options(std::forward<A>(arguments)...)) {}
  void reset() override {
    layers = this->register_module("layers", ModuleList());
    for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(Self::layer_of(options)->clone());
    if (options.norm().is_empty()) return;
    norm = options.norm().clone();
    this->register_module("norm", norm.ptr());
  }
  void reset_parameters() {
    TORCH_CHECK(layers->size() == size_t(options.num_layers()), "TransformerCoder should have ", options.num_layers(),
                " layers, but got ", layers->size());
    for (size_t i = 0; i < layers->size(); ++i) layers[i]->template as<LayerImpl>()->reset_parameters();
    if (auto* n = norm.is_empty() ? nullptr : norm.ptr()->template as<LayerNormImpl>()) n->reset_parameters();
  }

  Options options;
  ModuleList layers = nullptr;
  AnyModule norm;

 protected:
  /// Runs the layers one after the other, each with the same further inputs.
  template <class... Further>
  Tensor through(Tensor x, const Further&... further) {
    for (size_t i = 0; i < layers->size(); ++i) x = layers[i]->template as<LayerImpl>()->forward(x, further...);
    return norm.is_empty() ? x : norm.forward<Tensor>(x);
  }
};

}  // namespace detail

class TransformerEncoderImpl
    : public detail::TransformerCoder<TransformerEncoderImpl, TransformerEncoderOptions, TransformerEncoderLayerImpl> {
 public:
  using TransformerCoder::TransformerCoder;
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : TransformerCoder(TransformerEncoderOptions(std::move(encoder_layer), num_layers)) {}
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {}) {
    return through(src, src_mask, src_key_padding_mask);
  }
  static const TransformerEncoderLayer& layer_of(const TransformerEncoderOptions& o) { return o.encoder_layer(); }
};
TORCH_MODULE(TransformerEncoder);

class TransformerDecoderImpl
    : public detail::TransformerCoder<TransformerDecoderImpl, TransformerDecoderOptions, TransformerDecoderLayerImpl> {
 public:
  using TransformerCoder::TransformerCoder;
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : TransformerCoder(TransformerDecoderOptions(std::move(decoder_layer), num_layers)) {}
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {}) {
    return through(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
  }
  static const TransformerDecoderLayer& layer_of(const TransformerDecoderOptions& o) { return o.decoder_layer(); }
};
TORCH_MODULE(TransformerDecoder);

}  // namespace torch::nn
