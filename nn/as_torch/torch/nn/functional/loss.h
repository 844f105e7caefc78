// Losses as functions.
#pragma once
#include <vector>

#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/loss.h>

namespace torch::nn::functional {

/// Defines a loss of an input and a target; what follows are its arguments after them.
#define TORCH_LOSS(name, Options, ...)                                                          \
  inline Tensor name(const Tensor& input, const Tensor& target, const Options& o = {}) {        \
    return vesta::name(input, target, __VA_ARGS__);                                             \
  }
TORCH_LOSS(l1_loss, L1LossFuncOptions, detail::word(o.reduction()))
TORCH_LOSS(mse_loss, MSELossFuncOptions, detail::word(o.reduction()))
TORCH_LOSS(binary_cross_entropy, BinaryCrossEntropyFuncOptions, o.weight(), detail::word(o.reduction()))
TORCH_LOSS(binary_cross_entropy_with_logits, BinaryCrossEntropyWithLogitsFuncOptions, o.weight(),
           detail::word(o.reduction()), o.pos_weight())
TORCH_LOSS(hinge_embedding_loss, HingeEmbeddingLossFuncOptions, o.margin(), detail::word(o.reduction()))
TORCH_LOSS(multi_margin_loss, MultiMarginLossFuncOptions, double(o.p()), o.margin(), o.weight(),
           detail::word(o.reduction()))
TORCH_LOSS(huber_loss, HuberLossFuncOptions, detail::word(o.reduction()), o.delta())
TORCH_LOSS(multilabel_margin_loss, MultilabelMarginLossFuncOptions, detail::word(o.reduction()))
TORCH_LOSS(soft_margin_loss, SoftMarginLossFuncOptions, detail::word(o.reduction()))
TORCH_LOSS(poisson_nll_loss, PoissonNLLLossFuncOptions, o.log_input(), o.full(), o.eps(), detail::word(o.reduction()))
TORCH_LOSS(nll_loss, NLLLossFuncOptions, o.weight(), o.ignore_index(), detail::word(o.reduction()))
TORCH_LOSS(cross_entropy, CrossEntropyFuncOptions, o.weight(), o.ignore_index(), detail::word(o.reduction()),
           o.label_smoothing())
#undef TORCH_LOSS

inline Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o = {}) {
  const std::string reduction = detail::word(o.reduction());
  const bool batch = reduction == "batchmean";
  const Tensor loss = vesta::kl_div(input, target, batch ? "sum" : reduction, o.log_target());
  return batch && input.dim() > 0 ? vesta::div(loss, input.size(0)) : loss;
}
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o, double beta) {
  TORCH_CHECK(!o.beta(), "expected beta not to be provided in 'options', but got ", *o.beta());
  return vesta::smooth_l1_loss(input, target, detail::word(o.reduction()), beta);
}
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& o = {}) {
  return vesta::smooth_l1_loss(input, target, detail::word(o.reduction()), o.beta().value_or(1));
}
inline Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                    const CosineEmbeddingLossFuncOptions& o = {}) {
  return vesta::cosine_embedding_loss(input1, input2, target, o.margin(), detail::word(o.reduction()));
}
inline Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  const MarginRankingLossFuncOptions& o = {}) {
  return vesta::margin_ranking_loss(input1, input2, target, o.margin(), detail::word(o.reduction()));
}
inline Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                          const MultilabelSoftMarginLossFuncOptions& o = {}) {
  const Tensor right = vesta::mul(target, vesta::logsigmoid(input));
  const Tensor wrong = vesta::mul(vesta::rsub(target, 1), vesta::logsigmoid(vesta::neg(input)));
  Tensor losses = vesta::neg(vesta::add(right, wrong));
  if (o.weight().defined()) losses = vesta::mul(losses, o.weight());
  return detail::reduced(vesta::div(vesta::sum(losses, -1), input.size(-1)), detail::word(o.reduction()));
}
inline Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                  const TripletMarginLossFuncOptions& o = {}) {
  return vesta::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(), o.swap(),
                                    detail::word(o.reduction()));
}
inline Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                                const TripletMarginWithDistanceLossFuncOptions& o = {}) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : vesta::pairwise_distance(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (o.swap()) far = vesta::minimum(far, distance(positive, negative));
  return detail::reduced(vesta::clamp_min(vesta::sub(vesta::add(near, o.margin()), far), 0),
                         detail::word(o.reduction()));
}

namespace detail {
inline std::vector<int64_t> lengths(const Tensor& t) {
  const Tensor values = vesta::contiguous(t.to(vesta::DType::int64).to(vesta::Device()));
  return {values.data_ptr<int64_t>(), values.data_ptr<int64_t>() + values.numel()};
}
}  // namespace detail

inline Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, const CTCLossFuncOptions& o = {}) {
  return vesta::ctc_loss(log_probs, targets, detail::lengths(input_lengths), detail::lengths(target_lengths), o.blank(),
                         detail::word(o.reduction()), o.zero_infinity());
}

}  // namespace torch::nn::functional
