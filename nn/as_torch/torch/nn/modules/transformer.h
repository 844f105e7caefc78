// Transformers: an encoder, and a decoder that attends to its result.
#pragma once
#include <limits>

#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/options/transformer.h>

namespace torch::nn {

class TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  TORCH_LAYER_OPTIONS(TransformerImpl, TransformerOptions);
  void reset() override {
    encoder = options.custom_encoder().is_empty()
                  ? coder<TransformerEncoder, TransformerEncoderOptions, TransformerEncoderLayerOptions>(
                        options.num_encoder_layers())
                  : options.custom_encoder().clone();
    register_module("encoder", encoder.ptr());
    decoder = options.custom_decoder().is_empty()
                  ? coder<TransformerDecoder, TransformerDecoderOptions, TransformerDecoderLayerOptions>(
                        options.num_decoder_layers())
                  : options.custom_decoder().clone();
    register_module("decoder", decoder.ptr());
    reset_parameters();
  }
  void reset_parameters() {
    for (const Tensor& p : parameters()) {
      if (p.dim() > 1) init::xavier_uniform_(p);
    }
  }
  /// Returns the decoded sequence [T, N, E] for src [S, N, E] and tgt [T, N, E].
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {}, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {}) {
    TORCH_CHECK(src.dim() == 3 && tgt.dim() == 3, "src and tgt should have 3 dimensions, but got ", src.dim(), " and ",
                tgt.dim());
    TORCH_CHECK(src.size(1) == tgt.size(1), "src and tgt should have equal batch size (at dim 1), but got ",
                src.size(1), " and ", tgt.size(1));
    TORCH_CHECK(src.size(2) == options.d_model() && tgt.size(2) == options.d_model(),
                "src and tgt should have same feature size as d_model (at dim 2), but got ", src.size(2), " and ",
                tgt.size(2), " while d_model is ", options.d_model());
    const Tensor memory = encoder.forward<Tensor>(src, src_mask, src_key_padding_mask);
    return decoder.forward<Tensor>(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
  }
  /// Returns the mask [sz, sz] that hides what comes later: minus infinity above the diagonal.
  static Tensor generate_square_subsequent_mask(int64_t sz) {
    TORCH_CHECK(sz >= 0, "Input size must be non-negative to generate a valid square subsequent mask, but got ", sz);
    return vesta::triu(vesta::full({sz, sz}, -std::numeric_limits<double>::infinity()), 1);
  }

  AnyModule encoder, decoder;

 private:
  template <class Coder, class CoderOptions, class LayerOptions>
  AnyModule coder(int64_t num_layers) const {
    const auto layer = LayerOptions(options.d_model(), options.nhead())
                           .dim_feedforward(options.dim_feedforward())
                           .dropout(options.dropout())
                           .activation(options.activation());
    CoderOptions o(layer, num_layers);
    o.norm(AnyModule(LayerNorm(LayerNormOptions({options.d_model()}))));
    return AnyModule(Coder(o));
  }
};
TORCH_MODULE(Transformer);

}  // namespace torch::nn
