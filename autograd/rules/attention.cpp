// Attention by blocks. Of y = P v with P = softmax(q k^T scale): dv = P^T g, dP = g v^T, dS = P (dP - sum(dP P)),
// dq = dS k scale, dk = dS^T q scale. A block of P is computed again, so that none is saved.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/attention.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

/// Adds `t` to a part of a gradient, in place.
void add_to(const Tensor& part, const Tensor& t) { ops::add(part, t, 1, Out{&part, Out::inplace}); }

struct AttentionRule {
  Saved query, key, value, mask;
  AttentionPlan plan;  // without its mask
  static AttentionRule save(const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value,
                            MaybeTensor mask, double dropout_p, int64_t seed, bool is_causal, double scale, Needs) {
    return {Saved(query),
            Saved(key),
            Saved(value),
            mask.defined() ? Saved(*mask) : Saved(),
            {Tensor(), dropout_p, seed, is_causal, scale}};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    const Tensor q = query(), k = key(), v = value();
    AttentionPlan p = plan;
    p.mask = mask();
    const Tensor dq = zeros_like(q), dk = zeros_like(k), dv = zeros_like(v);
    size_t i = 0;
    for (const AttentionBlock& b : p.blocks(q, k)) {
      const Tensor gb = b.of_queries(g), weights = p.weights(b, q, k), kept = p.kept(i++, weights);
      if (needs[2]) add_to(b.of_keys(dv), matmul(mT(kept.defined() ? weights * kept : weights), gb));
      if (!needs[0] && !needs[1]) continue;
      Tensor of_weights = matmul(gb, mT(b.of_keys(v)));
      if (kept.defined()) of_weights = of_weights * kept;
      const Tensor of_scores = _softmax_backward(of_weights, weights, -1, false) * Scalar(p.scale);
      if (needs[0]) add_to(b.of_queries(dq), matmul(of_scores, b.of_keys(k)));
      if (needs[1]) add_to(b.of_keys(dk), matmul(mT(of_scores), b.of_queries(q)));
    }
    return {needs[0] ? dq : Tensor(), needs[1] ? dk : Tensor(), needs[2] ? dv : Tensor()};
  }
};

struct FusedAttentionRule {
  Saved query, key, value, mask, output, top;
  AttentionCall call;
  static constexpr unsigned results = 0b01;
  static FusedAttentionRule save(const TensorPair& r, const Tensor& query, const Tensor& key, const Tensor& value,
                                 MaybeTensor mask, double dropout_p, int64_t seed, int64_t offset, bool is_causal,
                                 double scale, Needs) {
    return {Saved(query),
            Saved(key),
            Saved(value),
            mask.defined() ? Saved(*mask) : Saved(),
            Saved::result(std::get<0>(r)),
            Saved(std::get<1>(r)),
            {dropout_p, seed, offset, is_causal, scale}};
  }
  Grads<3> operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    auto [q, k, v] = _fused_attention_backward(g[0], query(), key(), value(), mask(), output(), top(), call.dropout_p,
                                               call.seed, call.offset, call.is_causal, call.scale);
    return {q, k, v};
  }
};

}  // namespace

void register_attention() {
  record<ops::_attention, AttentionRule>();
  record<ops::_fused_attention, FusedAttentionRule>();
}

}  // namespace vesta::autograd::rules
