// Activations and attention as functions.
#pragma once
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include <torch/nn/functional/arguments.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/options/activation.h>

namespace torch::nn::functional {

inline Tensor elu(const Tensor& input, const ELUFuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::elu, input, o.inplace(), o.alpha(), 1.0, 1.0);
}
inline Tensor selu(const Tensor& input, const SELUFuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::selu, input, o.inplace());
}
inline Tensor celu(const Tensor& input, const CELUFuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::celu, input, o.inplace(), o.alpha());
}
inline Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& o = {}) {
  return vesta::hardshrink(input, o.lambda());
}
inline Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& o = {}) {
  return vesta::softshrink(input, o.lambda());
}
inline Tensor hardtanh(const Tensor& input, const HardtanhFuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::hardtanh, input, o.inplace(), o.min_val(), o.max_val());
}
inline Tensor leaky_relu(const Tensor& input, const LeakyReLUFuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::leaky_relu, input, o.inplace(), o.negative_slope());
}
inline Tensor relu(const Tensor& input, const ReLUFuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::relu, input, o.inplace());
}
inline Tensor relu6(const Tensor& input, const ReLU6FuncOptions& o = {}) {
  return detail::pointwise(vesta::ops::hardtanh, input, o.inplace(), 0.0, 6.0);
}
inline Tensor threshold(const Tensor& input, const ThresholdFuncOptions& o) {
  return detail::pointwise(vesta::ops::threshold, input, o.inplace(), o.threshold(), o.value());
}
inline Tensor rrelu(const Tensor& input, const RReLUFuncOptions& o = {}) {
  return o.inplace() ? vesta::rrelu_(input, o.lower(), o.upper(), o.training())
                     : vesta::rrelu(input, o.lower(), o.upper(), o.training());
}
inline Tensor glu(const Tensor& input, const GLUFuncOptions& o = {}) {
  TORCH_CHECK(input.dim() != 0, "glu does not support scalars because halving size must be even");
  return vesta::glu(input, o.dim());
}
inline Tensor gelu(const Tensor& input, const GELUFuncOptions& o = {}) { return vesta::gelu(input, o.approximate()); }
inline Tensor softplus(const Tensor& input, const SoftplusFuncOptions& o = {}) {
  return vesta::softplus(input, o.beta(), o.threshold());
}
inline Tensor logsigmoid(const Tensor& input) { return vesta::logsigmoid(input); }
inline Tensor silu(const Tensor& input) { return vesta::silu(input); }
inline Tensor mish(const Tensor& input) { return vesta::mish(input); }
inline Tensor softsign(const Tensor& input) { return vesta::softsign(input); }
inline Tensor tanhshrink(const Tensor& input) { return vesta::tanhshrink(input); }
inline Tensor prelu(const Tensor& input, const Tensor& weight) { return vesta::prelu(input, weight); }

namespace detail {
inline vesta::MaybeDType maybe(const std::optional<torch::Dtype>& dtype) {
  return dtype ? vesta::MaybeDType(*dtype) : vesta::MaybeDType();
}
}  // namespace detail

inline Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& o) {
  return vesta::softmax(input, o.dim(), detail::maybe(o.dtype()));
}
inline Tensor softmin(const Tensor& input, const SoftminFuncOptions& o) {
  return vesta::softmax(vesta::neg(input), o.dim(), detail::maybe(o.dtype()));
}
inline Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& o) {
  return vesta::log_softmax(input, o.dim(), detail::maybe(o.dtype()));
}
/// Draws from a distribution over categories, softly or (hard) as one-hot vectors with the soft ones' gradient.
inline Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& o = {}) {
  const Tensor noise = vesta::neg(vesta::log(vesta::exponential_(vesta::empty_like(logits.detach()))));
  const Tensor soft = vesta::softmax(vesta::div(vesta::add(logits, noise), o.tau()), o.dim());
  if (!o.hard()) return soft;
  const Tensor which = vesta::argmax(soft, o.dim(), true);
  const Tensor one = vesta::scatter(vesta::zeros_like(soft.detach()), o.dim(), which, 1.0);
  return vesta::add(vesta::sub(one, soft.detach()), soft);
}

namespace detail {

/// Projects query, key and value to vectors of the model, by one product where they are one tensor.
inline std::array<Tensor, 3> projected(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const MultiheadAttentionForwardFuncOptions& o) {
  const Tensor& b = o.in_proj_bias();
  const std::vector<Tensor> biases = b.defined() ? vesta::chunk(b, 3) : std::vector<Tensor>(3);
  std::vector<Tensor> weights{o.q_proj_weight(), o.k_proj_weight(), o.v_proj_weight()};
  if (!o.use_separate_proj_weight()) {
    if (query.is_same(key) && key.is_same(value)) {
      const std::vector<Tensor> parts = vesta::chunk(vesta::linear(query, o.in_proj_weight(), b), 3, -1);
      return {parts[0], parts[1], parts[2]};
    }
    weights = vesta::chunk(o.in_proj_weight(), 3);
  }
  return {vesta::linear(query, weights[0], biases[0]), vesta::linear(key, weights[1], biases[1]),
          vesta::linear(value, weights[2], biases[2])};
}

/// Returns a mask as numbers to add: minus infinity where a boolean one is true.
inline Tensor added_mask(const Tensor& mask, const Tensor& like) {
  if (!mask.defined() || vesta::is_float(mask.dtype())) return mask;
  const Tensor zeros = vesta::zeros(mask.sizes(), like.dtype(), like.device());
  return vesta::masked_fill(zeros, mask.to(vesta::DType::bool_), -std::numeric_limits<double>::infinity());
}
/// Adds to a mask a last column that masks nothing.
inline Tensor longer(const Tensor& mask) { return mask.defined() ? vesta::pad(mask, {0, 1}) : mask; }

}  // namespace detail

/// Attends from `query` [L, N, E] to `key` and `value` [S, N, *]; gives the output [L, N, E] and, if asked for, the
/// weights [N, L, S] (of each head: [N, heads, L, S]).
inline std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                               const Tensor& value,
                                                               const MultiheadAttentionForwardFuncOptions& o) {
  TORCH_CHECK(query.dim() == 3, "multi_head_attention_forward: expected a query [L, N, E], got ", query.sizes());
  const int64_t length = query.size(0), batch = query.size(1), width = query.size(2);
  TORCH_CHECK(width == o.embed_dim_to_check(), "multi_head_attention_forward: expected embed_dim ",
              o.embed_dim_to_check(), ", got ", width);
  TORCH_CHECK(key.size(0) == value.size(0) && key.size(1) == value.size(1),
              "multi_head_attention_forward: expected key and value of one length and batch, got ", key.sizes(),
              " and ", value.sizes());
  const int64_t heads = o.num_heads(), size = width / heads;
  TORCH_CHECK(size * heads == width, "embed_dim must be divisible by num_heads");
  auto [q, k, v] = detail::projected(query, key, value, o);
  Tensor mask = detail::added_mask(o.attn_mask(), q), padding = detail::added_mask(o.key_padding_mask(), q);
  if (mask.defined()) {
    TORCH_CHECK(mask.dim() == 2 || mask.dim() == 3, "attn_mask's dimension ", mask.dim(), " is not supported");
    if (mask.dim() == 2) mask = vesta::unsqueeze(mask, 0);
    const int64_t count = mask.size(0);
    TORCH_CHECK((count == 1 || count == batch * heads) && mask.size(1) == length && mask.size(2) == key.size(0),
                "The size of the attn_mask is not correct: got ", o.attn_mask().sizes());
    mask = vesta::reshape(mask, {count == 1 ? 1 : batch, count == 1 ? 1 : heads, length, key.size(0)});
  }
  if (o.bias_k().defined() && o.bias_v().defined()) {
    TORCH_CHECK(!o.static_k().defined() && !o.static_v().defined(), "bias cannot be added to static key or value.");
    k = vesta::cat({k, vesta::repeat(o.bias_k(), {1, batch, 1})});
    v = vesta::cat({v, vesta::repeat(o.bias_v(), {1, batch, 1})});
    mask = detail::longer(mask), padding = detail::longer(padding);
  }
  // [length, N, E] becomes [N, heads, length, E / heads]
  const auto split = [&](const Tensor& x) {
    return vesta::permute(vesta::reshape(x, {x.size(0), batch, heads, size}), {1, 2, 0, 3});
  };
  const auto given = [&](const Tensor& x) { return vesta::reshape(x, {batch, heads, -1, size}); };
  q = split(q);
  k = o.static_k().defined() ? given(o.static_k()) : split(k);
  v = o.static_v().defined() ? given(o.static_v()) : split(v);
  if (o.add_zero_attn()) {
    k = vesta::pad(k, {0, 0, 0, 1}), v = vesta::pad(v, {0, 0, 0, 1});
    mask = detail::longer(mask), padding = detail::longer(padding);
  }
  const int64_t source = k.size(2);
  if (padding.defined()) {
    TORCH_CHECK(padding.size(0) == batch && padding.size(1) == source,
                "multi_head_attention_forward: expected key_padding_mask [", batch, ", ", key.size(0), "], got ",
                o.key_padding_mask().sizes());
    padding = vesta::view(padding, {batch, 1, 1, source});
    mask = mask.defined() ? vesta::add(mask, padding) : padding;
  }
  const double drop = o.training() ? o.dropout_p() : 0;
  const auto joined = [&](const Tensor& y) {
    const Tensor lines = vesta::reshape(vesta::permute(y, {2, 0, 1, 3}), {length, batch, width});
    return vesta::linear(lines, o.out_proj_weight(), o.out_proj_bias());
  };
  if (!o.need_weights()) return {joined(vesta::scaled_dot_product_attention(q, k, v, mask, drop)), Tensor()};
  Tensor scores = vesta::matmul(vesta::mul(q, 1 / std::sqrt(double(size))), vesta::transpose(k, -2, -1));
  if (mask.defined()) scores = vesta::add(scores, mask);
  Tensor weights = vesta::softmax(scores, -1);
  if (drop > 0) weights = vesta::dropout(weights, drop, true);
  const Tensor y = joined(vesta::matmul(weights, v));
  return {y, o.average_attn_weights() ? vesta::mean(weights, 1) : weights};
}

}  // namespace torch::nn::functional
