#include <vesta/cuda/lib/cudnn_attention.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <vesta/core/precision.h>
#include <vesta/cuda/lib/cudnn_device.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {
namespace {

using AttentionKey = std::array<int64_t, 14 + 3 * size_t(attention_tensors)>;
using Plans = cudnn::PlansOnDevice<AttentionKey>;

AttentionKey key_of(const AttentionDesc& d, bool gradient) {
  AttentionKey key{int64_t(d.dtype), gradient, d.batch,    d.heads,      d.shared_heads,
                   d.queries,        d.keys,   d.key_size, d.value_size, d.causal};
  if (d.bias) key[10] = 1 + int64_t(d.bias->dtype), key[11] = d.bias->sizes[0], key[12] = d.bias->sizes[1];
  if (d.bias) key[13] = d.bias->row;
  size_t at = 14;
  for (const auto& steps : d.strides)
    for (const int64_t step : steps) key[at++] = step;
  return key;
}

bool may_use_cudnn() {
  const ProductSettings& settings = product_settings();
  if (!settings.convolution_library || !settings.attention_library) return false;
  const cudnn::Loaded& loaded = cudnn::Loaded::get();
  if (loaded.library.usable()) return true;
  if (std::strcmp(rt::implementation(), "CUDA") == 0) {
    warn_once(loaded.library.problem() + " Attention uses kernels of our own.");
  }
  return false;
}

/// Queues a call with the device's handle locked.
void run(const AttentionWork& w, const cudnn::Plan& plan, cudnn::Handle handle) {
  Tensor workspace;
  if (plan.workspace()) workspace = empty_tensor(Dims{plan.workspace()}, DType::uint8, w.device);
  float scale = float(w.scale), hidden = -INFINITY, one = 1;
  std::vector<std::pair<int64_t, void*>> pointers;
  for (int t = 0; t < attention_tensors; ++t) {
    if (w.data[size_t(t)]) pointers.emplace_back(t + 1, w.data[size_t(t)]);
  }
  const bool gradient = w.data[attention_of_q];
  pointers.emplace_back(attention_top_id, w.top);
  pointers.emplace_back(attention_scale_id, &scale);
  if (w.desc.causal) pointers.emplace_back(attention_hidden_id, &hidden);
  if (gradient) pointers.emplace_back(attention_one_id, &one);
  if (w.desc.bias) pointers.emplace_back(attention_bias_id, w.make_bias());
  plan.run(handle, pointers, plan.workspace() ? workspace.impl()->data() : nullptr);
}

}  // namespace

// Note [Who computes attention]
// cuDNN's kernels use the tensor cores better than ours (wgmma on Hopper). It computes what it can with the same
// meaning as ours, so that a gradient may come from either, whoever has computed the result; the rest is ours:
// - float32 and float64: it takes 16-bit floats.
// - Few queries of many keys: blocks of ours share the keys (attention_range).
// - Dropout: weights are dropped by the index of their element, the same on every device; it draws in an order of its
// own.
// - Rows that are no multiple of 16 bytes, or operands that are expanded: it refuses them.
// - Masks whose numbers would take too much memory.
// And what a plan refuses: a gradient whose workspace (the scores' gradient in 16 bits) is over the limit, for one.
//
// Note [Masks as numbers]
// cuDNN takes a mask as numbers that are added to scores (a "bias"). It is not known to keep -inf out of differences
// where a query, or a tile of keys, sees nothing, and very low numbers lose the digits of scores; so a hidden key gets
// -2^21, or the lowest number of float16, and lower numbers of a mask are raised to half of that. Against any key that
// is seen, weights are zero either way. A query that may see nothing then gets the result of one without a mask: it is
// made zero here, as it is in our own kernels and in PyTorch, and its `top` infinite, so that the gradient, whoever
// computes it, has weights of exp(score - inf) = 0 for it. Two cases differ from our own kernels: a hidden key whose
// score is not finite is not hidden (nor is it in PyTorch), and a query all of whose numbers are that low weighs keys
// by their scores, as if the numbers were equal. Masks that are the same for all batches or heads are converted once
// for all; those for all queries are repeated, since no document promises that rows may broadcast. Rows are aligned to
// 16 bytes.
const char* why_not_cudnn(const AttentionWork& w) {
  const AttentionDesc& d = w.desc;
  if (itemsize(d.dtype) != 2) return "cuDNN takes 16-bit floats";
  if (w.in_ranges) return "blocks of our own kernels share the keys of few queries";
  if (d.bias && d.bias->bytes() > cudnn::Choice().workspace_limit) return "a mask would take too much memory";
  if (w.dropout) return "weights are dropped by the index of their element";
  constexpr int64_t kPack = 8;  // 16-bit floats of 16 bytes
  if (d.key_size % kPack || d.value_size % kPack) return "rows are no multiple of 16 bytes";
  for (size_t t = 0; t < attention_tensors; ++t) {
    if (!w.data[t]) continue;
    if (reinterpret_cast<uintptr_t>(w.data[t]) % 16 != 0) return "an operand is not aligned to 16 bytes";
    for (const int64_t step : d.strides[t]) {
      if (step <= 0 || step % kPack) return "an operand is expanded, or its rows are not aligned to 16 bytes";
    }
  }
  return nullptr;
}

namespace {

/// Queues a call with the device's handle locked; returns false, and a problem for a warning if that is unexpected.
bool run_locked(const AttentionWork& w, bool gradient, std::string& problem) {
  Plans& on = Plans::get(w.device.index);
  std::lock_guard guard(on.lock);
  try {
    on.use(current_stream(w.device.index).handle());
    std::string why;  // shapes that cuDNN does not take are no problem: our own kernels do
    const auto make = [&](const cudnn::Target& target) { return plan_attention(w.desc, gradient, target, {}); };
    const cudnn::Plan* plan = on.plan(key_of(w.desc, gradient), make, why);
    if (plan) run(w, *plan, on.handle);
    return plan;
  } catch (const cudnn::Refused& e) {
    problem = fmt::format("cuDNN refused attention ({}); kernels of our own are used.", e.what());
    return false;
  }
}

}  // namespace

bool attention_by_cudnn(const AttentionWork& w, bool gradient) {
  if (why_not_cudnn(w) || !may_use_cudnn()) return false;
  std::string problem;
  const bool done = run_locked(w, gradient, problem);
  if (!problem.empty()) warn_once(problem);  // unlocked: it may wait for Python's lock, and its holder for ours
  return done;
}

}  // namespace vesta::cuda
