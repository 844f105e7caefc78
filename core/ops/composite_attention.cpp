// Attention (Vaswani et al. 2017). A tour: where the matrix of scores is small it is computed whole, and its gradient
// is that of the parts; else `_attention` computes it by blocks of rows, of which only one exists at a time, and its
// rule (autograd/rules/attention.cpp) computes the blocks again: memory is linear in the number of queries and of keys.
// Devices with a kernel that never writes scores use that instead (composite_fused_attention.cpp).
#include <algorithm>
#include <cmath>
#include <limits>

#include <vesta/core/base/philox.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/attention.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/attention.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/random.h>
#include <vesta/core/shape.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_ATTENTION)

namespace {

constexpr const char* kOp = "scaled_dot_product_attention";
constexpr double kNever = -std::numeric_limits<double>::infinity();

/// Returns how many scores are computed at a time.
int64_t scores_at_once(Device device) { return device.type() == DeviceType::cpu ? int64_t(1) << 20 : int64_t(1) << 26; }
constexpr int64_t kFewestRows = 64;  // of a block: products of fewer are slow

}  // namespace

Tensor attention_weights(Tensor scores, const Tensor& mask, bool can_be_blind) {
  if (!mask.defined()) return softmax(scores, -1);
  scores = mask.dtype() == DType::bool_ ? where(mask, scores, kNever) : add(scores, mask.to(scores.dtype()));
  if (!can_be_blind || scores.size(-1) == 0) return softmax(scores, -1);
  const Tensor blind = eq(amax(scores.detach(), -1, true), kNever);
  return where(blind, 0.0, softmax(where(blind, 0.0, scores), -1));
}

namespace {

Tensor whole(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& attn_mask, double dropout_p,
             bool is_causal, double factor) {
  const Tensor scores = matmul(mul(q, factor), transpose(k, -2, -1));
  const Tensor mask = is_causal ? tril(ones({q.size(-2), k.size(-2)}, DType::bool_, q.device())) : attn_mask;
  Tensor weights = attention_weights(scores, mask, !is_causal);
  if (dropout_p > 0) weights = _dropout(weights, dropout_p, true);
  return matmul(weights, v);
}

/// Returns sizes without the last two.
Dims batch_of(const Tensor& t) { return Dims(t.sizes().first(size_t(t.dim() - 2))); }

/// Returns t [*, m, n] with the sizes `batch` before the last two.
Tensor with_batch(const Tensor& t, Dims batch) {
  batch.push_back(t.size(-2)), batch.push_back(t.size(-1));
  return expand(t, batch);
}

Tensor by_blocks(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& attn_mask, double dropout_p,
                 bool is_causal, double factor) {
  Dims batch = broadcast_shapes(broadcast_shapes(batch_of(q), batch_of(k), kOp), batch_of(v), kOp);
  if (attn_mask.defined() && attn_mask.dim() > 2) batch = broadcast_shapes(batch, batch_of(attn_mask), kOp);
  const int64_t heads = numel_of(batch, kOp);
  const auto flat = [&](const Tensor& t) { return reshape(with_batch(t, batch), {heads, t.size(-2), t.size(-1)}); };
  Tensor mask;
  if (attn_mask.defined()) {
    Dims sizes = batch;
    sizes.push_back(q.size(-2)), sizes.push_back(k.size(-2));
    mask = expand(attn_mask, sizes);
  }
  int64_t seed = 0;
  if (dropout_p > 0) {
    const RandomStream stream = next_stream(nullptr, q.device(), kOp);
    const Philox4 words = philox_block(stream.seed, stream.offset, 0);
    seed = int64_t(uint64_t(words.word[0]) << 31 | words.word[1] >> 1);
  }
  const Tensor y = _attention(flat(q), flat(k), flat(v), mask, dropout_p, seed, is_causal, factor);
  batch.push_back(q.size(-2)), batch.push_back(v.size(-1));
  return reshape(y, batch);
}

/// Returns whether scores are computed by blocks. The gradient of a mask is as large as they are.
bool in_blocks(const Tensor& q, const Tensor& k, const Tensor& mask, double dropout_p) {
  if (q.numel() == 0 || k.numel() == 0) return false;
  if (mask.defined() && layer_state.grad_enabled && mask.requires_grad()) return false;
  if (dropout_p > 0 && q.device().type() != DeviceType::cpu) return false;  // a graph must draw anew at each replay
  return q.numel() / q.size(-1) > scores_at_once(q.device()) / k.size(-2);
}

/// Returns whether one kernel computes attention. It has no gradient of a mask, and takes no empty operand; that of the
/// CPU has no dropout.
bool in_one_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double dropout_p) {
  const DeviceType device = q.device().type();
  const bool host = device == DeviceType::cpu || device == DeviceType::meta;
  if (device != DeviceType::cuda && (!host || dropout_p > 0)) return false;
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return false;
  return !(mask.defined() && (mask.numel() == 0 || (layer_state.grad_enabled && mask.requires_grad())));
}

}  // namespace

Tensor scaled_dot_product_attention_composite(const Tensor& query, const Tensor& key, const Tensor& value,
                                              MaybeTensor attn_mask, double dropout_p, bool is_causal,
                                              MaybeDouble scale, bool enable_gqa) {
  VESTA_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, runtime, kOp, ": Expected query, key, and value ",
              "to all be at least 2 dimensional, but got ", query.sizes(), ", ", key.sizes(), " and ", value.sizes(),
              ".");
  VESTA_CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(), runtime, kOp, ": Expected query, key, ",
              "and value to have the same dtype, but got query.dtype: ", query.dtype(), ", key.dtype: ", key.dtype(),
              ", and value.dtype: ", value.dtype(), " instead.");
  VESTA_CHECK(query.size(-1) == key.size(-1) && key.size(-2) == value.size(-2), runtime, kOp, ": expected query ",
              "[*, L, E], key [*, S, E] and value [*, S, V], got ", query.sizes(), ", ", key.sizes(), " and ",
              value.sizes(), ".");
  VESTA_CHECK(!is_causal || !attn_mask.defined(), runtime, kOp,
              ": Explicit attn_mask should not be set when is_causal=True");
  VESTA_CHECK(dropout_p >= 0 && dropout_p <= 1, runtime, kOp, ": expected a dropout_p in [0, 1], got ", dropout_p, ".");
  check_floating(query, kOp);
  // The CPU has no products of 16-bit floats that are faster than those of float32.
  const DType dtype = query.dtype(), wide = query.device().type() == DeviceType::cpu ? compute_type(dtype) : dtype;
  const Tensor q = query.to(wide);
  const Tensor& mask = attn_mask;
  Tensor k = key.to(wide), v = value.to(wide);
  VESTA_CHECK(!mask.defined() || mask.dtype() == DType::bool_ || mask.dtype() == query.dtype() ||
                  mask.dtype() == DType::float32,
              runtime, kOp, ": Expected attn_mask dtype to be bool or float or to match query dtype, but got ",
              "attn_mask.dtype: ", mask.dtype(), " and query.dtype: ", query.dtype(), " instead.");
  const double factor = scale ? *scale : 1 / std::sqrt(double(std::max<int64_t>(query.size(-1), 1)));
  if (enable_gqa) {
    VESTA_CHECK(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3 && key.size(-3) > 0 && value.size(-3) > 0 &&
                    query.size(-3) % key.size(-3) == 0 && query.size(-3) % value.size(-3) == 0,
                runtime, kOp, ": Number of heads in key and value must divide the number of heads in query, got ",
                query.sizes(), ", ", key.sizes(), " and ", value.sizes(), ".");
  }
  if (in_one_kernel(q, k, v, mask, dropout_p)) {
    const bool narrow = mask.defined() && mask.dtype() != DType::bool_ && mask.dtype() != DType::float32;
    return fused_attention(q, k, v, narrow ? mask.to(wide) : mask, dropout_p, is_causal, factor, enable_gqa).to(dtype);
  }
  if (enable_gqa) {
    k = repeat_interleave(k, query.size(-3) / key.size(-3), -3);
    v = repeat_interleave(v, query.size(-3) / value.size(-3), -3);
  }
  const bool blocks = in_blocks(q, k, mask, dropout_p);
  return (blocks ? by_blocks : whole)(q, k, v, mask, dropout_p, is_causal, factor).to(dtype);
}

// ---- By blocks ----

Tensor AttentionBlock::of_queries(const Tensor& t) const { return narrow(narrow(t, 0, head, heads), 1, row, rows); }
Tensor AttentionBlock::of_keys(const Tensor& t) const { return narrow(narrow(t, 0, head, heads), 1, 0, columns); }

std::vector<AttentionBlock> AttentionPlan::blocks(const Tensor& query, const Tensor& key) const {
  const int64_t heads = query.size(0), rows = query.size(1), columns = key.size(1);
  const int64_t most = scores_at_once(query.device());
  const int64_t r = std::min(rows, std::max(kFewestRows, most / std::max<int64_t>(columns, 1)));
  const int64_t h = std::clamp<int64_t>(most / std::max<int64_t>(r * columns, 1), 1, std::max<int64_t>(heads, 1));
  std::vector<AttentionBlock> blocks;
  for (int64_t head = 0; head < heads; head += h) {
    for (int64_t row = 0; row < rows; row += r) {
      const int64_t end = std::min(rows, row + r);
      blocks.push_back({head, std::min(h, heads - head), row, end - row, is_causal ? std::min(columns, end) : columns});
    }
  }
  return blocks;
}

namespace {

/// Returns the block's part of a mask [*, queries, keys]: [rows, columns] where it is that of all heads, else [heads,
/// rows, columns].
Tensor block_of_mask(const AttentionBlock& b, const Tensor& mask) {
  const auto part = [&](const Tensor& m) { return narrow(narrow(m, 0, b.row, b.rows), 1, 0, b.columns); };
  const Dims batch = batch_of(mask);
  const auto of_head = [&](int64_t head) {
    Tensor m = mask;
    for (size_t d = batch.size(); d-- > 0; head /= batch[d]) m = select(m, int64_t(d), head % batch[d]);
    return part(m);
  };
  bool shared = true;
  for (size_t d = 0; d < batch.size(); ++d) shared = shared && (batch[d] == 1 || mask.stride(int64_t(d)) == 0);
  if (shared) return of_head(0);
  TensorVector parts;
  for (int64_t head = b.head; head < b.head + b.heads; ++head) parts.push_back(of_head(head));
  return stack(parts, 0);
}

}  // namespace

Tensor AttentionPlan::weights(const AttentionBlock& b, const Tensor& query, const Tensor& key) const {
  const Tensor scores = matmul(mul(b.of_queries(query), scale), transpose(b.of_keys(key), -2, -1));
  if (!is_causal) return attention_weights(scores, mask.defined() ? block_of_mask(b, mask) : Tensor(), true);
  const Tensor seen = tril(ones({b.rows, b.columns}, DType::bool_, scores.device()), b.row);
  return attention_weights(scores, seen, false);
}

Tensor AttentionPlan::kept(size_t i, const Tensor& weights) const {
  if (dropout_p == 0) return {};
  if (dropout_p == 1) return zeros_like(weights);
  Generator generator(uint64_t(seed) + 0x9E3779B97F4A7C15u * i, weights.device());
  Tensor r = empty(IntList(weights.sizes()), weights.dtype(), weights.device());
  bernoulli_(r, 1 - dropout_p, &generator);
  return mul(r, 1 / (1 - dropout_p));
}

Tensor _attention_composite(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask,
                            double dropout_p, int64_t seed, bool is_causal, double scale) {
  VESTA_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3 && query.size(0) == key.size(0) &&
                  query.size(0) == value.size(0) && query.size(2) == key.size(2) && key.size(1) == value.size(1),
              runtime, kOp, ": expected query [*, L, E], key [*, S, E] and value [*, S, V], got ", query.sizes(), ", ",
              key.sizes(), " and ", value.sizes(), ".");
  const AttentionPlan plan{mask, dropout_p, seed, is_causal, scale};
  Tensor y = empty({query.size(0), query.size(1), value.size(2)}, query.dtype(), query.device());
  size_t i = 0;
  for (const AttentionBlock& b : plan.blocks(query, key)) {
    Tensor weights = plan.weights(b, query, key);
    if (const Tensor kept = plan.kept(i++, weights); kept.defined()) weights = mul(weights, kept);
    copy_(b.of_queries(y), matmul(weights, b.of_keys(value)));
  }
  return y;
}

}  // namespace vesta
