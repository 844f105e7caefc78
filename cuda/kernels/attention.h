// The arguments of fused attention: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// An operand [batch, heads, rows, columns] of the launch's dtype, its columns side by side. Strides count elements.
struct AttentionOperand {
  void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
  bool packed = false;   // rows are aligned for packs of four
  bool aligned = false;  // to 16 bytes
};

/// The mask of scores: [batch, heads, queries, keys], with strides in elements, of which any may be 0.
struct AttentionMask {
  enum Kind : int { none, boolean, same, single };  // numbers of the operands' dtype, or float32
  Kind kind = none;
  const void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
  bool aligned = false;  // neighbours lie side by side, rows are aligned to 16 bytes
};

/// Attention of `heads` heads of queries, of which `group` share a head of keys and values, and its gradient. No size
/// is 0. `top` and `inner` are [batch, heads, queries] of the type that the dtype computes in.
struct AttentionLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t batch = 1, heads = 1, group = 1, queries = 1, keys = 1, key_size = 1, value_size = 1;
  AttentionOperand q, k, v, out, grad;
  AttentionOperand of_q, of_k, of_v;  // gradients
  AttentionMask mask;
  bool causal = false;
  double scale = 1;
  void* top = nullptr;    // the logarithm of each query's sum of exponentials
  void* inner = nullptr;  // each query's sum of grad * out
  float* parts = nullptr;  // of results, if the keys are cut: attention_part_numbers() of them
  double kept = 1;        // the probability to keep a weight; below 1: dropout
  uint64_t seed = 0, offset = 0;
};

/// Returns how many keys a block of the forward pass meets: all of them, or, where few queries meet many keys, those of
/// a range. It depends on the dtype, the size of heads and the numbers of queries and keys, so that the bits of a
/// result do not depend on batch and heads.
inline int64_t attention_range(DType dtype, int64_t queries, int64_t keys, int64_t widest, bool causal) {
  constexpr int64_t few = 16, tiles = 8, tile_bytes = 8 << 10, least = 3;
  if (itemsize(dtype) > 4 || widest > 128 || queries > few || causal) return keys;
  const int64_t range = tiles * tile_bytes / (itemsize(dtype) * (widest <= 64 ? 64 : 128));
  return keys > (least - 1) * range ? range : keys;
}
inline int64_t attention_range(const AttentionLaunch& l) {
  return attention_range(l.dtype, l.queries, l.keys, l.key_size > l.value_size ? l.key_size : l.value_size, l.causal);
}
/// Returns how many floats `parts` has; 0: blocks meet all keys.
inline int64_t attention_part_numbers(const AttentionLaunch& l) {
  const int64_t range = attention_range(l), ranges = (l.keys + range - 1) / range;
  return ranges > 1 ? l.batch * l.heads * ranges * l.queries * (l.value_size + 2) : 0;
}

/// Queues the forward pass: writes `out` and `top`. One kernel, or two if the keys are cut.
void attention(const AttentionLaunch& l);
/// Queues the gradient: reads `out` and `top`, writes `inner`, then the gradients of q, k and v.
void attention_backward(const AttentionLaunch& l);

/// A mask that becomes numbers for cuDNN, [batch, heads, queries, keys] with rows `row` elements apart, a multiple
/// of 8.
struct AttentionBiasLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::bfloat16;  // of the operands: a 16-bit float
  AttentionMask mask;
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, row = 1;
  bool causal = false;
  void* bias = nullptr;  // of the operands' dtype, or float32 for a mask of that
  bool* blind = nullptr;  // [batch, heads, queries]: whether a query sees nothing; may be null
};
/// The queries that see nothing; strides of batch and heads in elements, which may be 0.
struct AttentionBlind {
  const bool* blind = nullptr;
  int64_t batch = 0, head = 0;
};
/// Queues the conversion of a mask.
void attention_bias(const AttentionBiasLaunch& l);
/// Queues what makes zeros of the results of such queries, and infinity of their `top`. Rows are of packs of 8.
void attention_blind(const AttentionLaunch& l, const AttentionBlind& b);

// Forward pass and gradient for some dtypes, a file each. Each returns whether the dtype is its own.
bool attention_double(const AttentionLaunch& l, bool gradient);
bool attention_float(const AttentionLaunch& l, bool gradient);
bool attention_half(const AttentionLaunch& l, bool gradient);
bool attention_bfloat(const AttentionLaunch& l, bool gradient);

}  // namespace vesta::cuda
