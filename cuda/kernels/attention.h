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

/// What scores are masked with: [batch, heads, queries, keys], with strides in elements, of which any may be 0.
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
  double kept = 1;        // the probability to keep a weight; below 1: dropout
  uint64_t seed = 0, offset = 0;
};

/// Queues the forward pass, one kernel: writes `out` and `top`.
void attention(const AttentionLaunch& l);
/// Queues the gradient: reads `out` and `top`, writes `inner`, then the gradients of q, k and v.
void attention_gradient(const AttentionLaunch& l);

// The same for some dtypes, a file each. Each returns whether the dtype is its own.
bool attention_double(const AttentionLaunch& l, bool gradient);
bool attention_float(const AttentionLaunch& l, bool gradient);
bool attention_half(const AttentionLaunch& l, bool gradient);
bool attention_bfloat(const AttentionLaunch& l, bool gradient);

}  // namespace vesta::cuda
