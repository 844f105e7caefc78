// Attention by blocks and in one kernel: the parts that the ops' bodies, kernels and gradients share.
#pragma once
#include <vector>

#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/attention.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_ATTENTION)

/// A block of the matrix of scores: some rows (queries) of some heads, and the columns (keys) that they may attend to.
struct AttentionBlock {
  int64_t head, heads, row, rows, columns;
  /// Returns the block's part of a tensor [heads, queries, *], and of one [heads, keys, *].
  VESTA_API Tensor of_queries(const Tensor& t) const;
  VESTA_API Tensor of_keys(const Tensor& t) const;
};

/// The operands of `_attention` that determine which keys a query attends to. The weights of a block can be recomputed
/// at any time.
struct AttentionPlan {
  Tensor mask;  // [*, queries, keys], or undefined
  double dropout_p = 0;
  int64_t seed = 0;  // of dropout
  bool is_causal = false;
  double scale = 1;
  /// Returns the blocks of all scores. Their sizes follow from the shapes alone.
  VESTA_API std::vector<AttentionBlock> blocks(const Tensor& query, const Tensor& key) const;
  /// Returns the weights of a block, [heads, rows, columns], before dropout.
  VESTA_API Tensor weights(const AttentionBlock& block, const Tensor& query, const Tensor& key) const;
  /// Returns the factors of dropout for the weights of block number `i`; undefined without dropout.
  VESTA_API Tensor kept(size_t i, const Tensor& weights) const;
};

/// The options of fused attention.
struct AttentionCall {
  double dropout_p = 0;
  int64_t seed = 0, offset = 0;  // of the stream that dropout draws, as bits
  bool is_causal = false;
  double scale = 1;
};

/// Checks the operands of fused attention. Error(runtime): sizes that do not fit, or a mask of another shape.
VESTA_API void check_fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask);

// The bodies of fused attention and of its gradient, which compute all scores: for cases that the device's kernel does
// not support.
TensorPair _fused_attention_composite(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask,
                                      double dropout_p, int64_t seed, int64_t offset, bool is_causal, double scale);
TensorTriple _fused_attention_backward_composite(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                 const Tensor& value, MaybeTensor mask, const Tensor& output,
                                                 const Tensor& top, double dropout_p, int64_t seed, int64_t offset,
                                                 bool is_causal, double scale);

/// Makes a tensor [batch, heads, rows, columns] of the batch, dtype and device of `like`, in the memory layout of
/// `like` (heads within rows): what comes from [batch, rows, heads * columns] goes back to it as a view.
VESTA_API Tensor empty_heads(const Tensor& like, int64_t heads, int64_t rows, int64_t columns);

/// Returns softmax(scores + mask) over keys. A query that may attend to no key has zero weights and gradients;
/// `can_be_blind` says whether there may be one.
VESTA_API Tensor attention_weights(Tensor scores, const Tensor& mask, bool can_be_blind);

/// Computes scaled_dot_product_attention of checked operands with the fused op. With `grouped`, heads of key and value
/// (dimension -3) serve several of query.
VESTA_API Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                 double dropout_p, bool is_causal, double scale, bool grouped);

}  // namespace vesta
