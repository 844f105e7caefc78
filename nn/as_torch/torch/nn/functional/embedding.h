// Tables of vectors as functions.
#pragma once
#include <optional>

#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/embedding.h>

#include <vesta/nn/layers/linear.h>

namespace torch::nn::functional {

inline Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1) { return vesta::one_hot(tensor, num_classes); }

namespace detail {

/// Shortens in place the rows that are looked up and whose norm is above `max_norm`.
inline void renormalize(const Tensor& weight, const Tensor& rows, std::optional<double> max_norm, double norm_type) {
  if (!max_norm || rows.numel() == 0) return;
  const vesta::NoGrad off;
  const Tensor used = vesta::flatten(rows);
  vesta::index_copy_(weight, 0, used, vesta::renorm(vesta::index_select(weight, 0, used), norm_type, 0, *max_norm));
}
/// Counts padding_idx from the start. Error: there is no such row.
inline int64_t padding_row(const std::optional<int64_t>& padding_idx, int64_t rows) {
  if (!padding_idx) return -1;
  TORCH_CHECK(*padding_idx >= -rows && *padding_idx < rows, "Padding_idx must be within num_embeddings");
  return *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
}
/// Returns how often each row is looked up, as numbers to divide its gradient by.
inline Tensor counts_of(const Tensor& input, const Tensor& weight) {
  const Tensor rows = vesta::flatten(input.to(vesta::DType::int64));
  const Tensor none = vesta::zeros({weight.size(0)}, weight.dtype(), weight.device());
  return vesta::index_add(none, 0, rows, vesta::ones_like(rows, weight.dtype()));
}
/// Returns the same values, with a gradient that is multiplied by `share`.
inline Tensor with_scaled_gradient(const Tensor& x, const Tensor& share) {
  const Tensor value = x.detach();
  return vesta::add(value, vesta::mul(vesta::sub(x, value), share));
}

}  // namespace detail

inline Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o = {}) {
  detail::renormalize(weight, input, o.max_norm(), o.norm_type());
  const int64_t padding = detail::padding_row(o.padding_idx(), weight.size(0));
  const Tensor found = vesta::embedding(weight, input, padding, false, o.sparse());
  if (!o.scale_grad_by_freq() || !found.requires_grad()) return found;
  const Tensor counts = vesta::index_select(detail::counts_of(input, weight), 0, vesta::flatten(input));
  return detail::with_scaled_gradient(found,
                                      vesta::unsqueeze(vesta::reshape(vesta::reciprocal(counts), input.sizes()), -1));
}

/// Reduces bags of rows of `weight`: `input` is [bags, n], or [n] with offsets.
inline Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o = {}) {
  detail::renormalize(weight, input, o.max_norm(), o.norm_type());
  const vesta::nn::init::Skip skip;
  vesta::nn::EmbeddingBag bags(vesta::nn::EmbeddingBagOptions{.num_embeddings = weight.size(0),
                                                              .embedding_dim = 0,  // this one holds no table
                                                              .mode = detail::word(o.mode()),
                                                              .sparse = o.sparse(),
                                                              .include_last_offset = o.include_last_offset(),
                                                              .padding_idx = o.padding_idx()});
  TORCH_CHECK(!std::holds_alternative<enumtype::kMax>(o.mode()) || !o.scale_grad_by_freq(),
              "max mode does not support scaling the gradient by the frequency");
  bags.weight = weight;
  if (o.scale_grad_by_freq() && weight.requires_grad()) {
    const Tensor share = vesta::reciprocal(vesta::clamp_min(detail::counts_of(input, weight), 1));
    bags.weight = detail::with_scaled_gradient(weight, vesta::unsqueeze(share, 1));
  }
  return bags.forward(input, o.offsets(), o.per_sample_weights());
}

}  // namespace torch::nn::functional
