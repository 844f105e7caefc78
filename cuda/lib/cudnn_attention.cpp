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

using AttentionKey = std::array<int64_t, 10 + 3 * size_t(attention_tensors)>;
using Plans = cudnn::PlansOnDevice<AttentionKey>;

AttentionKey key_of(const AttentionDesc& d, bool gradient) {
  AttentionKey key{int64_t(d.dtype), gradient, d.batch,    d.heads,      d.shared_heads,
                   d.queries,        d.keys,   d.key_size, d.value_size, d.causal};
  size_t at = 10;
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
  pointers.emplace_back(attention_tensors + 1, w.top);
  pointers.emplace_back(attention_tensors + 2, &scale);
  if (w.desc.causal) pointers.emplace_back(attention_tensors + 3, &hidden);
  if (gradient) pointers.emplace_back(attention_tensors + 4, &one);
  plan.run(handle, pointers, plan.workspace() ? workspace.impl()->data() : nullptr);
}

}  // namespace

// Note [Who computes attention]
// cuDNN's kernels use the tensor cores better than ours (wgmma on Hopper). It computes what it can with the same
// meaning as ours, so that a gradient may come from either, whoever has computed the result; the rest is ours:
// - float32 and float64: it takes 16-bit floats.
// - Masks: a query that may see nothing has a result of zero here; there it is NaN.
// - Dropout: weights are dropped by the index of their element, the same on every device; it draws in an order of its
// own.
// - Rows that are no multiple of 16 bytes, or operands that are expanded: it refuses them.
// And what a plan refuses: a gradient whose workspace (the scores' gradient in 16 bits) is over the limit, for one.
const char* why_not_cudnn(const AttentionWork& w) {
  const AttentionDesc& d = w.desc;
  if (itemsize(d.dtype) != 2) return "cuDNN takes 16-bit floats";
  if (w.masked) return "a query that may see nothing has a result of zero";
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
