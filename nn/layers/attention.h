// Attention with several heads, and transformers (Vaswani et al. 2017).
#pragma once
#include <vesta/nn/layers/container.h>
#include <vesta/nn/layers/dropout.h>
#include <vesta/nn/layers/linear.h>
#include <vesta/nn/layers/norm.h>

namespace vesta::nn {

struct MultiheadAttentionOptions {
  static constexpr size_t required = 2;
  int64_t embed_dim, num_heads;
  double dropout = 0;  // the part of the attention weights that is dropped while training
  bool bias = true, add_bias_kv = false, add_zero_attn = false;
  MaybeInt kdim = {}, vdim = {};  // none: embed_dim
  bool batch_first = false;
  DType dtype = DType::float32;
  VESTA_FIELDS(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first)
  static constexpr std::string_view shown = "";
};
/// Attention of a query [L, N, E] to keys [S, N, kdim] and values [S, N, vdim] in num_heads parts of E:
/// concat(softmax(q k' / sqrt(d)) v) W + b. Without N too; [N, L, E] if batch_first.
class VESTA_API MultiheadAttention : public LayerOf<MultiheadAttention, MultiheadAttentionOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(MultiheadAttention)
  /// Returns the output and, if need_weights, the weights [N, L, S] (or of each head: [N, num_heads, L, S]). Masks are
  /// True, or a number to add, for keys [N, S] or pairs [L, S] ([N * num_heads, L, S]) to ignore. `is_causal` says that
  /// attn_mask is the causal mask.
  TensorPair forward(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor key_padding_mask = {},
                     bool need_weights = true, MaybeTensor attn_mask = {}, bool average_attn_weights = true,
                     bool is_causal = false);
  void reset_parameters();

  Tensor in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v;
  std::shared_ptr<NonDynamicallyQuantizableLinear> out_proj;

 private:
  /// Projects query, key and value to E.
  std::array<Tensor, 3> project(const Tensor& query, const Tensor& key, const Tensor& value) const;
};

struct TransformerLayerOptions {
  static constexpr size_t required = 2;
  int64_t d_model, nhead;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
  static constexpr std::string_view shown = "";
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;

/// Self-attention and a feed-forward network, each with a residual and a normalisation.
class VESTA_API TransformerEncoderLayer : public LayerOf<TransformerEncoderLayer, TransformerLayerOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(TransformerEncoderLayer)
  /// Returns the encoded sequence [L, N, E]; src_mask [L, L], src_key_padding_mask [N, L].
  Tensor forward(const Tensor& src, MaybeTensor src_mask = {}, MaybeTensor src_key_padding_mask = {},
                 bool is_causal = false);

  std::shared_ptr<MultiheadAttention> self_attn;
  std::shared_ptr<Linear> linear1;
  std::shared_ptr<Dropout> dropout;
  std::shared_ptr<Linear> linear2;
  std::shared_ptr<LayerNorm> norm1, norm2;
  std::shared_ptr<Dropout> dropout1, dropout2;
};

/// Self-attention, attention to the encoder's result and a feed-forward network.
class VESTA_API TransformerDecoderLayer : public LayerOf<TransformerDecoderLayer, TransformerLayerOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(TransformerDecoderLayer)
  /// Returns the decoded sequence [T, N, E] for memory [S, N, E]; masks [T, T], [T, S], [N, T], [N, S].
  Tensor forward(const Tensor& tgt, const Tensor& memory, MaybeTensor tgt_mask = {}, MaybeTensor memory_mask = {},
                 MaybeTensor tgt_key_padding_mask = {}, MaybeTensor memory_key_padding_mask = {},
                 bool tgt_is_causal = false, bool memory_is_causal = false);

  std::shared_ptr<MultiheadAttention> self_attn, multihead_attn;
  std::shared_ptr<Linear> linear1;
  std::shared_ptr<Dropout> dropout;
  std::shared_ptr<Linear> linear2;
  std::shared_ptr<LayerNorm> norm1, norm2, norm3;
  std::shared_ptr<Dropout> dropout1, dropout2, dropout3;
};

struct TransformerEncoderOptions {
  static constexpr size_t required = 2;
  std::shared_ptr<Module> encoder_layer;  // is copied: all copies start with its values
  int64_t num_layers;
  std::shared_ptr<Module> norm = {};
  VESTA_FIELDS(encoder_layer, num_layers, norm)
  static constexpr std::string_view shown = "";
};
/// A stack of copies of an encoder layer.
class VESTA_API TransformerEncoder : public LayerOf<TransformerEncoder, TransformerEncoderOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(TransformerEncoder)
  TransformerEncoder(std::shared_ptr<TransformerEncoderLayer> layer, int64_t num_layers,
                     std::shared_ptr<Module> norm = {})
      : TransformerEncoder(Options{std::move(layer), num_layers, std::move(norm)}) {}
  /// Returns the encoded sequence; whether the mask is causal is found out if is_causal is not given.
  Tensor forward(const Tensor& src, MaybeTensor mask = {}, MaybeTensor src_key_padding_mask = {},
                 std::optional<bool> is_causal = {});
  std::shared_ptr<Module> clone() const override;

  std::shared_ptr<ModuleList> layers;
  std::shared_ptr<Module> norm;
};

struct TransformerDecoderOptions {
  static constexpr size_t required = 2;
  std::shared_ptr<Module> decoder_layer;
  int64_t num_layers;
  std::shared_ptr<Module> norm = {};
  VESTA_FIELDS(decoder_layer, num_layers, norm)
  static constexpr std::string_view shown = "";
};
/// A stack of copies of a decoder layer.
class VESTA_API TransformerDecoder : public LayerOf<TransformerDecoder, TransformerDecoderOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(TransformerDecoder)
  TransformerDecoder(std::shared_ptr<TransformerDecoderLayer> layer, int64_t num_layers,
                     std::shared_ptr<Module> norm = {})
      : TransformerDecoder(Options{std::move(layer), num_layers, std::move(norm)}) {}
  Tensor forward(const Tensor& tgt, const Tensor& memory, MaybeTensor tgt_mask = {}, MaybeTensor memory_mask = {},
                 MaybeTensor tgt_key_padding_mask = {}, MaybeTensor memory_key_padding_mask = {},
                 std::optional<bool> tgt_is_causal = {}, bool memory_is_causal = false);
  std::shared_ptr<Module> clone() const override;

  std::shared_ptr<ModuleList> layers;
  std::shared_ptr<Module> norm;
};

struct TransformerOptions {
  int64_t d_model = 512, nhead = 8, num_encoder_layers = 6, num_decoder_layers = 6, dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(d_model, nhead, num_encoder_layers, num_decoder_layers, dim_feedforward, dropout, activation,
               layer_norm_eps, batch_first, norm_first, bias)
  static constexpr std::string_view shown = "";
};
/// An encoder and a decoder that attends to its result.
class VESTA_API Transformer : public LayerOf<Transformer, TransformerOptions> {
 public:
  Transformer() : Transformer(Options{}) {}
  VESTA_LAYER_CONSTRUCTORS(Transformer)
  /// Returns the decoder's result [T, N, E] for tgt [T, N, E], given src [S, N, E].
  Tensor forward(const Tensor& src, const Tensor& tgt, MaybeTensor src_mask = {}, MaybeTensor tgt_mask = {},
                 MaybeTensor memory_mask = {}, MaybeTensor src_key_padding_mask = {},
                 MaybeTensor tgt_key_padding_mask = {}, MaybeTensor memory_key_padding_mask = {},
                 std::optional<bool> src_is_causal = {}, std::optional<bool> tgt_is_causal = {},
                 bool memory_is_causal = false);
  /// Returns the causal mask [size, size]: minus infinity above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size, DType dtype = DType::float32);

  std::shared_ptr<TransformerEncoder> encoder;
  std::shared_ptr<TransformerDecoder> decoder;
};

}  // namespace vesta::nn
