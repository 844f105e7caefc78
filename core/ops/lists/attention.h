// The op list of attention by blocks and in one kernel. It is no topic: its ops are not called by name. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_ATTENTION(OP)                                                                                        \
  OP(FUNCTION, Tensor, _attention,                                                                                     \
     (const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask, double dropout_p, int64_t seed,   \
      bool is_causal, double scale), (query, key, value, mask, dropout_p, seed, is_causal, scale), composite, hidden)  \
  OP(FUNCTION, TensorPair, _fused_attention,                                                                           \
     (const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask, double dropout_p, int64_t seed,   \
      int64_t offset, bool is_causal, double scale),                                                                   \
     (query, key, value, mask, dropout_p, seed, offset, is_causal, scale), composite, hidden)                          \
  OP(FUNCTION, TensorTriple, _fused_attention_backward,                                                                \
     (const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask,               \
      const Tensor& output, const Tensor& top, double dropout_p, int64_t seed, int64_t offset, bool is_causal,         \
      double scale), (grad, query, key, value, mask, output, top, dropout_p, seed, offset, is_causal, scale),          \
     composite, hidden)
