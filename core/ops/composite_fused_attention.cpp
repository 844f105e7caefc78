// Attention whose matrix of scores is never written: the operands in the form of the fused op, and its body. The body
// computes all scores; devices have kernels that do not. It also is what second derivatives are taken of, so that
// gradients are functions of the operands alone and not of the results that kernels are given to save work.
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/attention.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/random.h>
#include <vesta/core/shape.h>

namespace vesta {
namespace {

constexpr const char* kOp = "scaled_dot_product_attention";

/// Returns a tensor [*, heads, rows, columns] as [batch, heads, rows, columns], expanded to the sizes `outer` of * and,
/// where they differ, to `heads`.
Tensor with_heads(const Tensor& t, const Dims& outer, int64_t heads) {
  const Tensor u = t.dim() == 2 ? unsqueeze(t, 0) : t;
  Dims sizes = outer;
  sizes.push_back(heads), sizes.push_back(u.size(-2)), sizes.push_back(u.size(-1));
  const Tensor e = expand(u, sizes);
  return outer.size() == 1 ? e : reshape(e, {numel_of(outer, kOp), heads, u.size(-2), u.size(-1)});
}

int64_t heads_of(const Tensor& t) { return t.dim() > 2 ? t.size(-3) : 1; }
Dims outer_of(const Tensor& t) { return Dims(t.sizes().first(size_t(std::max<int64_t>(t.dim() - 3, 0)))); }

/// The weights of a call, computed whole, in the type that the operands compute in.
struct Weights {
  Tensor q, k, v;  // of each head of the queries; q is scaled
  Tensor scores, weights, kept;
  Weights(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const AttentionCall& call) {
    const DType wide = compute_type(query.dtype());
    const int64_t group = query.size(1) / key.size(1);
    q = mul(query.to(wide), call.scale);
    k = repeat_interleave(key.to(wide), group, 1), v = repeat_interleave(value.to(wide), group, 1);
    scores = matmul(q, transpose(k, -2, -1));
    const Tensor seen = call.is_causal ? tril(ones({q.size(-2), k.size(-2)}, DType::bool_, q.device())) : Tensor(mask);
    weights = attention_weights(scores, seen, !call.is_causal);
    if (seen.defined()) {
      scores = seen.dtype() == DType::bool_ ? where(seen, scores, -std::numeric_limits<double>::infinity())
                                            : add(scores, seen.to(wide));
    }
    if (call.dropout_p == 0) return;
    kept = zeros_like(weights.detach());
    if (call.dropout_p == 1) return;
    Generator generator(uint64_t(call.seed), kept.device(), uint64_t(call.offset));
    bernoulli_(kept, 1 - call.dropout_p, &generator);
    kept = mul(kept, 1 / (1 - call.dropout_p));
  }
  Tensor dropped(const Tensor& t) const { return kept.defined() ? mul(t, kept) : t; }
};

/// Sums over the heads of queries that share a head: [N, H, S, *] to [N, G, S, *].
Tensor shared(const Tensor& t, int64_t heads) {
  if (t.size(1) == heads) return t;
  return sum(reshape(t, {t.size(0), heads, t.size(1) / heads, t.size(2), t.size(3)}), 2);
}

}  // namespace

void check_fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask) {
  check_floating(query, kOp);
  VESTA_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.dtype() == key.dtype() &&
                  query.dtype() == value.dtype() && query.size(0) == key.size(0) && query.size(0) == value.size(0) &&
                  key.size(1) == value.size(1) && key.size(1) > 0 && query.size(1) % key.size(1) == 0 &&
                  query.size(3) == key.size(3) && key.size(2) == value.size(2) && query.numel() && key.numel() &&
                  value.numel(),
              runtime, kOp, ": expected query [N, H, L, E], key [N, G, S, E] and value [N, G, S, V], of one dtype and ",
              "not empty, G a divisor of H, got ", query.sizes(), ", ", key.sizes(), " and ", value.sizes(), ".");
  VESTA_CHECK(
      !mask.defined() ||
          (mask->dim() == 4 && mask->size(0) == query.size(0) && mask->size(1) == query.size(1) &&
           mask->size(2) == query.size(2) && mask->size(3) == key.size(2) &&
           (mask->dtype() == DType::bool_ || mask->dtype() == query.dtype() || mask->dtype() == DType::float32)),
      runtime, kOp, ": expected a mask [N, H, L, S] of bool, float32 or the query's dtype, got ", mask->sizes(), ".");
}

Tensor empty_heads(const Tensor& like, int64_t heads, int64_t rows, int64_t columns) {
  const int64_t batch = like.size(0);
  if (heads > 1 && like.strides()[1] < like.strides()[2] && like.strides()[1] != 0) {
    return transpose(empty_tensor({{batch, rows, heads, columns}}, like.dtype(), like.device()), 1, 2);
  }
  return empty_tensor({{batch, heads, rows, columns}}, like.dtype(), like.device());
}

TensorPair _fused_attention_composite(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask,
                                      double dropout_p, int64_t seed, int64_t offset, bool is_causal, double scale) {
  check_fused_attention(query, key, value, mask);
  const Weights w(query, key, value, mask, {dropout_p, seed, offset, is_causal, scale});
  const Tensor y = matmul(w.dropped(w.weights), w.v).to(query.dtype()), top = logsumexp(w.scores, -1, false);
  const double infinity = std::numeric_limits<double>::infinity();
  return {y, mask.defined() ? where(eq(top, -infinity), infinity, top) : top};
}

TensorTriple _fused_attention_backward_composite(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                 const Tensor& value, MaybeTensor mask, const Tensor&, const Tensor&,
                                                 double dropout_p, int64_t seed, int64_t offset, bool is_causal,
                                                 double scale) {
  check_fused_attention(query, key, value, mask);
  const Weights w(query, key, value, mask, {dropout_p, seed, offset, is_causal, scale});
  const Tensor g = grad.to(w.q.dtype());
  const Tensor of_weights = w.dropped(matmul(g, transpose(w.v, -2, -1)));
  const Tensor of_scores = mul(w.weights, sub(of_weights, sum(mul(of_weights, w.weights), -1, true)));
  const Tensor of_q = mul(matmul(of_scores, w.k), scale), of_k = matmul(transpose(of_scores, -2, -1), w.q),
               of_v = matmul(transpose(w.dropped(w.weights), -2, -1), g);
  return {of_q.to(query.dtype()), shared(of_k, key.size(1)).to(query.dtype()),
          shared(of_v, key.size(1)).to(query.dtype())};
}

Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                       double dropout_p, bool is_causal, double scale, bool grouped) {
  Dims outer = broadcast_shapes(broadcast_shapes(outer_of(query), outer_of(key), kOp), outer_of(value), kOp);
  int64_t heads = heads_of(query), dims = std::max({query.dim(), key.dim(), value.dim()});
  const auto of_all = [&](int64_t n) {
    VESTA_CHECK(n == heads || n == 1 || heads == 1, runtime, kOp,
                ": heads (dimension -3) do not broadcast: ", query.sizes(), ", ", key.sizes(), ", ", value.sizes(),
                ".");
    heads = std::max(heads, n);
  };
  if (!grouped) of_all(heads_of(key)), of_all(heads_of(value));
  if (mask.defined()) {
    outer = broadcast_shapes(outer, outer_of(mask), kOp);
    of_all(heads_of(mask)), dims = std::max(dims, mask.dim());
  }
  Tensor k = key, v = value;
  int64_t sharing = heads_of(key);  // heads of keys and of values
  if (sharing != heads_of(value) || heads % sharing != 0) {
    if (grouped) k = repeat_interleave(k, heads / k.size(-3), -3), v = repeat_interleave(v, heads / v.size(-3), -3);
    sharing = heads;
  }
  Tensor seen;
  if (mask.defined()) {
    Dims sizes = outer;
    sizes.push_back(heads), sizes.push_back(query.size(-2)), sizes.push_back(key.size(-2));
    seen = reshape(expand(mask, sizes), {numel_of(outer, kOp), heads, query.size(-2), key.size(-2)});
  }
  RandomStream stream{0, 0};
  if (dropout_p > 0) stream = next_stream(nullptr, query.device(), kOp);
  const auto [y, top] =
      _fused_attention(with_heads(query, outer, heads), with_heads(k, outer, sharing), with_heads(v, outer, sharing),
                       seen, dropout_p, int64_t(stream.seed), int64_t(stream.offset), is_causal, scale);
  Dims sizes = outer;
  if (dims > 2) sizes.push_back(heads);
  sizes.push_back(query.size(-2)), sizes.push_back(value.size(-1));
  return outer.size() == 1 ? y : reshape(y, sizes);
}

}  // namespace vesta
