// Attention by cuDNN: one fused graph forward and one backward, which write no matrix of scores to memory that outlives
// the call.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <vector>

#include <vesta/core/tensor.h>
#include <vesta/cuda/lib/cudnn_graph.h>

namespace vesta::cuda {

/// The tensors of attention's graphs, as indices of a list. Their numbers in a graph are one higher.
enum AttentionTensor : int {
  attention_q,
  attention_k,
  attention_v,
  attention_out,
  attention_grad,
  attention_of_q,
  attention_of_k,
  attention_of_v,
  attention_tensors,
};
/// The numbers of the other tensors in the graphs.
enum AttentionId : int64_t {
  attention_top_id = attention_tensors + 1,
  attention_scale_id,
  attention_hidden_id,
  attention_one_id,
  attention_bias_id,
};

/// Numbers that are added to scores: [batch or 1, heads or 1, queries, keys], rows `row` elements apart.
struct AttentionBias {
  DType dtype = DType::bfloat16;
  std::array<int64_t, 4> sizes{};
  int64_t row = 0;
  int64_t bytes() const { return sizes[0] * sizes[1] * sizes[2] * row * itemsize(dtype); }
};

/// Attention of `heads` heads of queries, which `shared_heads` heads of keys and values serve. No size is 0.
struct AttentionDesc {
  DType dtype = DType::bfloat16;
  int64_t batch = 1, heads = 1, shared_heads = 1, queries = 1, keys = 1, key_size = 1, value_size = 1;
  bool causal = false;
  std::optional<AttentionBias> bias;
  /// Steps of [batch, heads, rows] in elements; columns lie side by side.
  std::array<std::array<int64_t, 3>, attention_tensors> strides{};
};

/// Builds the plan of the forward pass, which also writes the logarithm of each query's sum of exponentials, or of the
/// gradient, for any target; raises cudnn::Refused. For tests, and for the calls below.
VESTA_API cudnn::Plan plan_attention(const AttentionDesc& desc, bool gradient, const cudnn::Target& target,
                                     const cudnn::Choice& choice);

/// One call of attention: what it computes on. The probability of dropout only decides which implementation computes.
struct AttentionWork {
  AttentionDesc desc;
  std::array<void*, attention_tensors> data{};
  void* top = nullptr;  // [batch, heads, queries], float32
  double scale = 1;
  bool dropout = false;
  bool in_ranges = false;  // our own kernels share the keys of few queries among blocks
  void* bias = nullptr;
  std::function<void*()> make_bias;  // queues what writes `bias`, once a plan takes it, and returns it
  Device device;
};

/// A part of the heads of a call: those of whole batches, or some of one batch.
struct AttentionSlice {
  int64_t batch = 0, batches = 1, head = 0, heads = 1;
};
/// Cuts the gradient of a call into parts whose workspaces are within the limit and whose operands are aligned to 16
/// bytes; one part if there are none.
VESTA_API std::vector<AttentionSlice> attention_slices(const AttentionDesc& desc, int64_t workspace_limit);
/// Sets the limit on the workspace of a gradient's plan, in bytes; at first it is that of every plan.
VESTA_API void set_attention_workspace_limit(int64_t bytes);

/// Returns why a call is left to our own kernels; null if cuDNN may compute it. Note [Who computes attention]
VESTA_API const char* why_not_cudnn(const AttentionWork& work);
/// Queues the forward pass, or the gradient, on the current stream. Returns false if cuDNN is missing, may not compute
/// this or refuses; then the results are incomplete.
bool attention_by_cudnn(const AttentionWork& work, bool gradient);

}  // namespace vesta::cuda
