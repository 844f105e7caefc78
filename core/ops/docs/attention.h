// The texts of help() for attention by blocks and in one kernel.
#pragma once

namespace vesta::doc {

inline constexpr char _attention[] =
    "_attention(query, key, value, mask, dropout_p, seed, is_causal, scale): scaled_dot_product_attention of heads by "
    "blocks of queries: query [N, L, E], key [N, S, E], value [N, S, V], mask [*, L, S] of N heads; gives [N, L, V].";
inline constexpr char _fused_attention[] =
    "_fused_attention(query, key, value, mask, dropout_p, seed, offset, is_causal, scale): "
    "scaled_dot_product_attention without the matrix of scores: query [N, H, L, E], key [N, G, S, E], value [N, G, S, "
    "V], mask [N, H, L, S]; a head of key and value serves H / G of query. Gives ([N, H, L, V], the logarithm of each "
    "query's sum of exponentials [N, H, L]). Dropout draws stream `offset` of `seed`.";
inline constexpr char _fused_attention_backward[] =
    "_fused_attention_backward(grad, query, key, value, mask, output, top, dropout_p, seed, offset, is_causal, scale): "
    "gradients of query, key and value.";

}  // namespace vesta::doc
