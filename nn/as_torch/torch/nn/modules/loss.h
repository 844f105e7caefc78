// Losses as layers.
#pragma once
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// Defines a loss of an input and a target over its function; what follow are the parts of its text.
#define TORCH_LOSS_LAYER(Name, function, ...)                                   \
  class Name##Impl : public detail::PlainLayer<Name##Impl, Name##Options> {     \
   public:                                                                      \
    using PlainLayer::PlainLayer;                                               \
    Tensor forward(const Tensor& input, const Tensor& target) {                 \
      return functional::function(input, target, options);                      \
    }                                                                           \
    TORCH_LAYER_TEXT(#Name __VA_OPT__(, ) __VA_ARGS__)                          \
  };                                                                            \
  TORCH_MODULE(Name)
TORCH_LOSS_LAYER(L1Loss, l1_loss);
TORCH_LOSS_LAYER(MSELoss, mse_loss);
TORCH_LOSS_LAYER(KLDivLoss, kl_div);
TORCH_LOSS_LAYER(HingeEmbeddingLoss, hinge_embedding_loss, "margin=", options.margin());
TORCH_LOSS_LAYER(MultiLabelMarginLoss, multilabel_margin_loss);
TORCH_LOSS_LAYER(SoftMarginLoss, soft_margin_loss);
TORCH_LOSS_LAYER(PoissonNLLLoss, poisson_nll_loss);
#undef TORCH_LOSS_LAYER

/// Defines the same with a text that has no parentheses.
#define TORCH_SMOOTH_LOSS_LAYER(Name, function)                                                              \
  class Name##Impl : public detail::PlainLayer<Name##Impl, Name##Options> {                                  \
   public:                                                                                                   \
    using PlainLayer::PlainLayer;                                                                            \
    Tensor forward(const Tensor& input, const Tensor& target) {                                              \
      return functional::function(input, target, options);                                                   \
    }                                                                                                        \
    void pretty_print(std::ostream& stream) const override { stream << "torch::nn::" #Name; }                \
  };                                                                                                         \
  TORCH_MODULE(Name)
TORCH_SMOOTH_LOSS_LAYER(SmoothL1Loss, smooth_l1_loss);
TORCH_SMOOTH_LOSS_LAYER(HuberLoss, huber_loss);
#undef TORCH_SMOOTH_LOSS_LAYER

/// Defines a loss with a buffer `weight`, which moves with the layer; `more` registers others. What follow are the
/// parts of its text.
#define TORCH_WEIGHTED_LOSS_LAYER(Name, function, given, members, more, ...)   \
  class Name##Impl : public Cloneable<Name##Impl> {                            \
   public:                                                                     \
    TORCH_LAYER_OPTIONS(Name##Impl, Name##Options);                            \
    void reset() override {                                                    \
      weight = register_buffer("weight", options.weight());                    \
      more;                                                                    \
    }                                                                          \
    Tensor forward(const Tensor& input, const Tensor& target) {                \
      return functional::function(input, target, given);                       \
    }                                                                          \
    TORCH_LAYER_TEXT(#Name __VA_OPT__(, ) __VA_ARGS__)                         \
    Tensor members;                                                            \
  };                                                                           \
  TORCH_MODULE(Name)
TORCH_WEIGHTED_LOSS_LAYER(BCELoss, binary_cross_entropy, BCELossOptions(options).weight(weight), weight, );
TORCH_WEIGHTED_LOSS_LAYER(BCEWithLogitsLoss, binary_cross_entropy_with_logits,
                          BCEWithLogitsLossOptions(options).weight(weight).pos_weight(pos_weight), weight;
                          Tensor pos_weight, pos_weight = register_buffer("pos_weight", options.pos_weight()));
TORCH_WEIGHTED_LOSS_LAYER(MultiMarginLoss, multi_margin_loss, MultiMarginLossOptions(options).weight(weight), weight,
                          TORCH_CHECK(options.p() == 1 || options.p() == 2, "only p == 1 and p == 2 supported"),
                          "p=", options.p(), ", margin=", options.margin(), ", weight=", options.weight(),
                          ", reduction=", enumtype::get_enum_name(options.reduction()));
TORCH_WEIGHTED_LOSS_LAYER(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss,
                          MultiLabelSoftMarginLossOptions(options).weight(weight), weight, );
TORCH_WEIGHTED_LOSS_LAYER(NLLLoss, nll_loss, NLLLossOptions(options).weight(weight), weight, );
TORCH_WEIGHTED_LOSS_LAYER(CrossEntropyLoss, cross_entropy, CrossEntropyLossOptions(options).weight(weight), weight, );
#undef TORCH_WEIGHTED_LOSS_LAYER

/// Defines a loss of three tensors over its function; what follow are the parts of its text.
#define TORCH_LOSS_OF_THREE(Name, function, ...)                                             \
  class Name##Impl : public detail::PlainLayer<Name##Impl, Name##Options> {                  \
   public:                                                                                   \
    using PlainLayer::PlainLayer;                                                            \
    Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third) {         \
      return functional::function(first, second, third, options);                            \
    }                                                                                        \
    TORCH_LAYER_TEXT(#Name __VA_OPT__(, ) __VA_ARGS__)                                       \
  };                                                                                         \
  TORCH_MODULE(Name)
TORCH_LOSS_OF_THREE(CosineEmbeddingLoss, cosine_embedding_loss, "margin=", options.margin());
TORCH_LOSS_OF_THREE(MarginRankingLoss, margin_ranking_loss);
TORCH_LOSS_OF_THREE(TripletMarginLoss, triplet_margin_loss, "margin=", options.margin(), ", p=", options.p(),
                    ", eps=", options.eps(), ", swap=", options.swap());
TORCH_LOSS_OF_THREE(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss, "margin=", options.margin(),
                    ", swap=", options.swap());
#undef TORCH_LOSS_OF_THREE

class CTCLossImpl : public detail::PlainLayer<CTCLossImpl, CTCLossOptions> {
 public:
  using PlainLayer::PlainLayer;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) {
    return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
  TORCH_LAYER_TEXT("CTCLoss")
};
TORCH_MODULE(CTCLoss);

}  // namespace torch::nn
