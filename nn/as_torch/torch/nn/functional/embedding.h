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
}  // namespace detail

inline Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o = {}) {
  detail::defined(input, "embedding"), detail::defined(weight, "embedding", "weight");
  detail::renormalize(weight, input, o.max_norm(), o.norm_type());
  const int64_t padding = detail::padding_row(o.padding_idx(), weight.size(0));
  return vesta::embedding(weight, input, padding, o.scale_grad_by_freq(), o.sparse());
}

/// Reduces bags of rows of `weight`: `input` is [bags, n], or [n] with offsets.
inline Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o = {}) {
  detail::defined(input, "embedding_bag"), detail::defined(weight, "embedding_bag", "weight");
  detail::renormalize(weight, input, o.max_norm(), o.norm_type());
  const vesta::nn::init::Skip skip;
  vesta::nn::EmbeddingBag bags(vesta::nn::EmbeddingBagOptions{.num_embeddings = weight.size(0),
                                                              .embedding_dim = 0,  // this one holds no table
                                                              .scale_grad_by_freq = o.scale_grad_by_freq(),
                                                              .mode = detail::word(o.mode()),
                                                              .sparse = o.sparse(),
                                                              .include_last_offset = o.include_last_offset(),
                                                              .padding_idx = o.padding_idx()});
  TORCH_CHECK(!std::holds_alternative<enumtype::kMax>(o.mode()) || !o.scale_grad_by_freq(),
              "max mode does not support scaling the gradient by the frequency");
  bags.weight = weight;
  return bags.forward(input, o.offsets(), o.per_sample_weights());
}

}  // namespace torch::nn::functional
