#include <vesta/cuda/lib/cudnn_attention.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
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

std::atomic<int64_t> workspace_limit{cudnn::Choice().workspace_limit};  // of a gradient's plan

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
  if (w.desc.bias) pointers.emplace_back(attention_bias_id, w.bias);
  plan.run(handle, pointers, plan.workspace() ? workspace.impl()->data() : nullptr);
}

/// Returns the call for a part of the heads; `bias` is set if it is there.
AttentionWork slice_of(const AttentionWork& w, const AttentionSlice& s) {
  AttentionWork part = w;
  AttentionDesc& d = part.desc;
  const auto moved = [](void* p, int64_t elements, DType dtype) -> void* {
    return p ? static_cast<char*>(p) + elements * itemsize(dtype) : nullptr;
  };
  const int64_t group = d.heads / d.shared_heads;
  d.batch = s.batches, d.heads = s.heads, d.shared_heads = s.heads / group;
  for (int t = 0; t < attention_tensors; ++t) {
    const bool shared = t == attention_k || t == attention_v || t == attention_of_k || t == attention_of_v;
    const auto& steps = d.strides[size_t(t)];
    void*& p = part.data[size_t(t)];
    p = moved(p, s.batch * steps[0] + (shared ? s.head / group : s.head) * steps[1], d.dtype);
  }
  part.top = moved(w.top, (s.batch * w.desc.heads + s.head) * d.queries, DType::float32);
  if (!d.bias) return part;
  auto& n = d.bias->sizes;
  const int64_t of_head = n[2] * d.bias->row, of_batch = n[1] * of_head;
  part.bias = moved(w.bias, (n[0] > 1 ? s.batch * of_batch : 0) + (n[1] > 1 ? s.head * of_head : 0), d.bias->dtype);
  n[0] = n[0] > 1 ? s.batches : 1;
  // In memory a batch is still that of all heads: with less than that, there is one batch.
  n[1] = n[1] > 1 ? s.heads : 1;
  return part;
}

}  // namespace

void set_attention_workspace_limit(int64_t bytes) { workspace_limit = bytes; }

std::vector<AttentionSlice> attention_slices(const AttentionDesc& d, int64_t workspace_limit) {
  constexpr int64_t tile = 128, more = 64 << 10;  // to which sides of the scores may be rounded up; sums and the like
  const auto rounded = [](int64_t n) { return (n + tile - 1) / tile * tile; };
  const int64_t group = d.heads / d.shared_heads;
  const int64_t shared = group > 1 ? d.keys * (d.key_size + d.value_size) * 4 : 0;  // sums before those of a group
  const int64_t of_head = rounded(d.queries) * rounded(d.keys) * itemsize(d.dtype) + d.queries * 4 + shared;
  const int64_t at_once = (workspace_limit - more) / of_head;
  const std::vector<AttentionSlice> whole{{0, d.batch, 0, d.heads}};
  if (at_once < group || at_once >= d.batch * d.heads) return whole;
  // Parts of nearly equal numbers: as few as may be, and of at most two sizes. Of one in `all`, `floats` of `top` lie
  // before the next: they begin at multiples of 16 bytes.
  const auto cut = [](int64_t all, int64_t most, int64_t floats, auto f) {
    const int64_t unit = floats % 4 == 0 ? 1 : floats % 2 == 0 ? 2 : 4;
    most = most / unit * unit;
    if (most == 0) return false;
    const int64_t count = (all + most - 1) / most, size = ((all + count - 1) / count + unit - 1) / unit * unit;
    for (int64_t first = 0; first < all; first += size) f(first, std::min(size, all - first));
    return true;
  };
  std::vector<AttentionSlice> slices;
  if (at_once >= d.heads) {
    const bool done = cut(d.batch, at_once / d.heads, d.heads * d.queries,
                          [&](int64_t b, int64_t n) { slices.push_back({b, n, 0, d.heads}); });
    return done ? slices : whole;
  }
  for (int64_t b = 0; b < d.batch; ++b) {
    const auto add = [&](int64_t head, int64_t n) { slices.push_back({b, 1, head * group, n * group}); };
    if (d.batch > 1 && d.heads * d.queries % 4 != 0) return whole;
    if (!cut(d.shared_heads, at_once / group, group * d.queries, add)) return whole;
  }
  return slices;
}

// Note [Who computes attention]
// cuDNN's kernels use the tensor cores better than ours (wgmma on Hopper). It computes what it can with the same
// meaning as ours, so that a gradient may come from either, whoever has computed the result; the rest is ours:
// - float32 and float64: it takes 16-bit floats.
// - Few queries of many keys: blocks of ours share the keys (attention_range).
// - Dropout: weights are dropped by the index of their element, the same on every device; it draws in an order of its
// own.
// - Rows that are no multiple of 16 bytes, or operands that are expanded: it refuses them.
// - Masks whose numbers would take too much memory.
// And what a plan refuses. The workspace of a gradient holds the scores' gradient in 16 bits: within the limit, or it
// is computed in parts, of whole batches or of some heads of one, one after the other.
//
// Note [Masks as numbers]
// cuDNN takes a mask as numbers that are added to scores (a "bias"). It is not known to keep -inf out of differences
// where a query, or a tile of keys, sees nothing. Nor may numbers be as low as they like: where nothing else is seen, a
// weight is 2^(score * log2(e) - top * log2(e)), of which one product may be rounded, and must not overflow. So a
// hidden key gets -2^26 (rounded by at most 4), or float16's lowest number, and lower numbers of a mask than -2^20 (of
// float16: -49152) become that. Against a key that is seen, weights are zero either way.
// A query that may see nothing then gets the result of one without a mask: it is made zero here, as it is in our own
// kernels and in PyTorch, and its `top` infinite, so that the gradient, whoever computes it, has weights of
// exp(score - inf) = 0 for it. Two cases differ from our own kernels: a hidden key whose score is beyond such numbers
// is seen, or NaN (in PyTorch too if it is not finite), and a query all of whose numbers are that low weighs keys by
// their scores, as if the numbers were equal. Masks that are the same for all batches or heads are converted once for
// all; those for all queries are repeated, since no document promises that rows may broadcast. Rows are aligned to 16
// bytes.
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
  Plans& on = Plans::get(w.device.index());
  std::lock_guard guard(on.lock);
  try {
    on.use(current_stream(w.device.index()).handle());
    std::string why;  // shapes that cuDNN does not take are no problem: our own kernels do
    AttentionWork all = w;
    std::vector<AttentionSlice> slices{{0, w.desc.batch, 0, w.desc.heads}};
    if (gradient) slices = attention_slices(w.desc, workspace_limit);
    for (const AttentionSlice& s : slices) {
      const AttentionDesc desc = slice_of(all, s).desc;
      const auto make = [&](const cudnn::Target& target) { return plan_attention(desc, gradient, target, {}); };
      const cudnn::Plan* plan = on.plan(key_of(desc, gradient), make, why);
      if (!plan) return false;
      if (desc.bias && !all.bias) all.bias = w.make_bias();
      run(slice_of(all, s), *plan, on.handle);
    }
    return true;
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
