// The text of help() for attention by blocks.
#pragma once

namespace vesta::doc {

inline constexpr char _attention[] =
    "_attention(query, key, value, mask, dropout_p, seed, is_causal, scale): scaled_dot_product_attention of heads by "
    "blocks of queries: query [N, L, E], key [N, S, E], value [N, S, V], mask [*, L, S] of N heads; gives [N, L, V].";

}  // namespace vesta::doc
