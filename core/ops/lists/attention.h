// The op list of attention by blocks. It is no topic: nobody calls its op by name. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_ATTENTION(OP)                                                                                        \
  OP(FUNCTION, Tensor, _attention,                                                                                     \
     (const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask, double dropout_p, int64_t seed,   \
      bool is_causal, double scale), (query, key, value, mask, dropout_p, seed, is_causal, scale), composite, hidden)
