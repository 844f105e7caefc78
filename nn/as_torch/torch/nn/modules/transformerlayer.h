// The layers of transformers (Vaswani et al. 2017).
#pragma once
#include <functional>
#include <variant>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/options/transformerlayer.h>

namespace torch::nn {
namespace detail {
/// Runs the activation between the two maps of a feed-forward network.
inline Tensor activated(const activation_t& activation, const Tensor& x) {
  if (const auto* f = std::get_if<std::function<Tensor(const Tensor&)>>(&activation)) return (*f)(x);
  return std::holds_alternative<enumtype::kGELU>(activation) ? vesta::gelu(x) : vesta::relu(x);
}
}  // namespace detail

/// Self-attention and a feed-forward network, each with a residual and a normalisation behind it.
class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TORCH_LAYER_OPTIONS(TransformerEncoderLayerImpl, TransformerEncoderLayerOptions);
  void reset() override {
    const int64_t width = options.d_model();
    self_attn = register_module(
        "self_attn", MultiheadAttention(MultiheadAttentionOptions(width, options.nhead()).dropout(options.dropout())));
    linear1 = register_module("linear1", Linear(width, options.dim_feedforward()));
    dropout = register_module("dropout", Dropout(options.dropout()));
    linear2 = register_module("linear2", Linear(options.dim_feedforward(), width));
    norm1 = register_module("norm1", LayerNorm(LayerNormOptions({width})));
    norm2 = register_module("norm2", LayerNorm(LayerNormOptions({width})));
    dropout1 = register_module("dropout1", Dropout(options.dropout()));
    dropout2 = register_module("dropout2", Dropout(options.dropout()));
  }
  void reset_parameters() {
    self_attn->_reset_parameters();
    linear1->reset_parameters(), linear2->reset_parameters();
    norm1->reset_parameters(), norm2->reset_parameters();
  }
  /// Returns the encoded sequence [L, N, E]; src_mask [L, L], src_key_padding_mask [N, L].
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {}) {
    const Tensor own = std::get<0>(self_attn(src, src, src, src_key_padding_mask, false, src_mask));
    const Tensor x = norm1(vesta::add(src, dropout1(own)));
    const Tensor fed = linear2(dropout(detail::activated(options.activation(), linear1(x))));
    return norm2(vesta::add(x, dropout2(fed)));
  }

  MultiheadAttention self_attn = nullptr;
  Linear linear1 = nullptr;
  Dropout dropout = nullptr;
  Linear linear2 = nullptr;
  LayerNorm norm1 = nullptr, norm2 = nullptr;
  Dropout dropout1 = nullptr, dropout2 = nullptr;
};
TORCH_MODULE(TransformerEncoderLayer);

/// Self-attention, attention to the encoder's result and a feed-forward network.
class TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TORCH_LAYER_OPTIONS(TransformerDecoderLayerImpl, TransformerDecoderLayerOptions);
  void reset() override {
    const int64_t width = options.d_model();
    const auto attention = [&](const char* name) {
      const auto o = MultiheadAttentionOptions(width, options.nhead()).dropout(options.dropout());
      return MultiheadAttention(register_module(name, MultiheadAttention(o)));
    };
    const auto drop = [&](const char* name) { return Dropout(register_module(name, Dropout(options.dropout()))); };
    const auto norm = [&](const char* name) {
      return LayerNorm(register_module(name, LayerNorm(LayerNormOptions({width}))));
    };
    self_attn = attention("self_attn");
    multihead_attn = attention("multihead_attn");
    linear1 = register_module("linear1", Linear(width, options.dim_feedforward()));
    dropout = drop("dropout");
    linear2 = register_module("linear2", Linear(options.dim_feedforward(), width));
    norm1 = norm("norm1"), norm2 = norm("norm2"), norm3 = norm("norm3");
    dropout1 = drop("dropout1"), dropout2 = drop("dropout2"), dropout3 = drop("dropout3");
  }
  void reset_parameters() {
    self_attn->_reset_parameters(), multihead_attn->_reset_parameters();
    linear1->reset_parameters(), linear2->reset_parameters();
    norm1->reset_parameters(), norm2->reset_parameters(), norm3->reset_parameters();
  }
  /// Returns the decoded sequence [T, N, E] for memory [S, N, E]; masks [T, T], [T, S], [N, T], [N, S].
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {}) {
    const Tensor own = std::get<0>(self_attn(tgt, tgt, tgt, tgt_key_padding_mask, false, tgt_mask));
    Tensor x = norm1(vesta::add(tgt, dropout1(own)));
    const Tensor other = std::get<0>(multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask));
    x = norm2(vesta::add(x, dropout2(other)));
    const Tensor fed = linear2(dropout(activation(linear1(x))));
    return norm3(vesta::add(x, dropout3(fed)));
  }

  MultiheadAttention self_attn{nullptr};
  Dropout dropout1{nullptr};
  LayerNorm norm1{nullptr};
  MultiheadAttention multihead_attn{nullptr};
  Dropout dropout2{nullptr};
  LayerNorm norm2{nullptr};
  Linear linear1{nullptr};
  Dropout dropout{nullptr};
  Linear linear2{nullptr};
  Dropout dropout3{nullptr};
  LayerNorm norm3{nullptr};

 protected:
  Tensor activation(const Tensor& input) { return detail::activated(options.activation(), input); }
};
TORCH_MODULE(TransformerDecoderLayer);

}  // namespace torch::nn
