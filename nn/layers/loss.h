// Losses of an input and its target, as modules. `reduction` is "mean", "sum" or "none".
#pragma once
#include <functional>

#include <vesta/core/ops/loss.h>
#include <vesta/nn/layers/linear.h>

namespace vesta::nn {

/// The options of losses that have nothing else.
struct LossOptions {
  std::string reduction = "mean";
  VESTA_FIELDS(reduction)
  static constexpr std::string_view shown = "";
};
struct WeightedLossOptions {
  Tensor weight = {};  // a factor for each class or element
  std::string reduction = "mean";
  VESTA_FIELDS(weight, reduction)
  static constexpr std::string_view shown = "";
};

namespace detail {
/// Raises unless a reduction is one of those that a loss has.
VESTA_API void check_reduction(const std::string& op, const std::string& reduction, bool has_batchmean);

/// The base of losses: their tensors (`weight`, `pos_weight`) are buffers.
template <class Self, class Options>
class VESTA_API Loss : public LayerOf<Self, Options> {
 public:
  Loss() : Loss(Options{}) {}
  explicit Loss(Options o) : LayerOf<Self, Options>(std::move(o)) {
    check_reduction(Self::name(), this->options.reduction, requires { Self::has_batchmean; });
    if constexpr (requires { Options::weight; }) weight = keep("weight", this->options.weight);
    if constexpr (requires { Options::pos_weight; }) pos_weight = keep("pos_weight", this->options.pos_weight);
  }
  template <class First, class... A>
    requires Positional<Options, First, A...>
  explicit Loss(First&& first, A&&... rest) : Loss(Options{std::forward<First>(first), std::forward<A>(rest)...}) {}

 protected:
  Tensor weight, pos_weight;

 private:
  Tensor keep(const char* name, const Tensor& t) {  // an alias: the caller's tensor does not become a buffer itself
    return this->register_buffer(name, t.defined() ? t.detach() : Tensor());
  }
};
}  // namespace detail

/// Defines a loss of an input and a target; what follows the options is its value.
#define VESTA_LOSS(Name, OptionsOfIt, ...)                                                             \
  struct VESTA_API Name : detail::Loss<Name, OptionsOfIt> {                                            \
    using detail::Loss<Name, OptionsOfIt>::Loss;                                                       \
    Tensor forward(const Tensor& input, const Tensor& target) { return __VA_ARGS__; }                  \
  }

/// |input - target|.
VESTA_LOSS(L1Loss, LossOptions, l1_loss(input, target, options.reduction));
/// (input - target) ** 2.
VESTA_LOSS(MSELoss, LossOptions, mse_loss(input, target, options.reduction));
/// log(1 + e ** (-target * input)), target -1 or 1.
VESTA_LOSS(SoftMarginLoss, LossOptions, soft_margin_loss(input, target, options.reduction));
/// The hinge loss of classes in the target before its first -1 against the others.
VESTA_LOSS(MultiLabelMarginLoss, LossOptions, multilabel_margin_loss(input, target, options.reduction));
/// The binary cross-entropy of probabilities against probabilities.
VESTA_LOSS(BCELoss, WeightedLossOptions, binary_cross_entropy(input, target, weight, options.reduction));

struct SmoothL1LossOptions {
  std::string reduction = "mean";
  double beta = 1;
  VESTA_FIELDS(reduction, beta)
  static constexpr std::string_view shown = "";
};
/// 0.5 * d ** 2 / beta where d = |input - target| < beta, d - beta / 2 elsewhere (Girshick 2015).
VESTA_LOSS(SmoothL1Loss, SmoothL1LossOptions,
           options.beta == 0 ? l1_loss(input, target, options.reduction)
                             : smooth_l1_loss(input, target, options.reduction, options.beta));

struct HuberLossOptions {
  std::string reduction = "mean";
  double delta = 1;
  VESTA_FIELDS(reduction, delta)
  static constexpr std::string_view shown = "";
};
/// 0.5 * d ** 2 where d = |input - target| < delta, delta * (d - delta / 2) elsewhere (Huber 1964).
VESTA_LOSS(HuberLoss, HuberLossOptions, huber_loss(input, target, options.reduction, options.delta));

struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  VESTA_FIELDS(weight, ignore_index, reduction)
  static constexpr std::string_view shown = "";
};
/// Minus the log-probability [N, C, ...] of the target's class.
VESTA_LOSS(NLLLoss, NLLLossOptions, nll_loss(input, target, weight, options.ignore_index, options.reduction));

struct CrossEntropyLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0;
  VESTA_FIELDS(weight, ignore_index, reduction, label_smoothing)
  static constexpr std::string_view shown = "";
};
/// The cross-entropy of logits [N, C] (or [C], [N, C, d1, ...]) against class numbers or probabilities.
VESTA_LOSS(CrossEntropyLoss, CrossEntropyLossOptions,
           cross_entropy(input, target, weight, options.ignore_index, options.reduction, options.label_smoothing));

struct BCEWithLogitsLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};
  VESTA_FIELDS(weight, reduction, pos_weight)
  static constexpr std::string_view shown = "";
};
/// The binary cross-entropy of logits against probabilities of the same shape.
VESTA_LOSS(BCEWithLogitsLoss, BCEWithLogitsLossOptions,
           binary_cross_entropy_with_logits(input, target, weight, options.reduction, pos_weight));

struct PoissonNLLLossOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  std::string reduction = "mean";
  VESTA_FIELDS(log_input, full, eps, reduction)
  static constexpr std::string_view shown = "";
};
/// e ** input - target * input, with `full` plus Stirling's approximation of log(target!).
VESTA_LOSS(PoissonNLLLoss, PoissonNLLLossOptions,
           poisson_nll_loss(input, target, options.log_input, options.full, options.eps, options.reduction));

struct KLDivLossOptions {
  std::string reduction = "mean";
  bool log_target = false;
  VESTA_FIELDS(reduction, log_target)
  static constexpr std::string_view shown = "";
};
/// target * (log(target) - input), input a log-probability; the reduction "batchmean" divides the sum by the batch's
/// size.
struct VESTA_API KLDivLoss : detail::Loss<KLDivLoss, KLDivLossOptions> {
  using detail::Loss<KLDivLoss, KLDivLossOptions>::Loss;
  static constexpr bool has_batchmean = true;
  Tensor forward(const Tensor& input, const Tensor& target);
};

struct HingeEmbeddingLossOptions {
  double margin = 1;
  std::string reduction = "mean";
  VESTA_FIELDS(margin, reduction)
  static constexpr std::string_view shown = "";
};
/// input where the target is 1, max(0, margin - input) where it is -1.
VESTA_LOSS(HingeEmbeddingLoss, HingeEmbeddingLossOptions,
           hinge_embedding_loss(input, target, options.margin, options.reduction));

struct MultiMarginLossOptions {
  int64_t p = 1;
  double margin = 1;
  Tensor weight = {};
  std::string reduction = "mean";
  VESTA_FIELDS(p, margin, weight, reduction)
  static constexpr std::string_view shown = "";
};
/// The mean over classes of max(0, margin - x_target + x_class) ** p.
VESTA_LOSS(MultiMarginLoss, MultiMarginLossOptions,
           multi_margin_loss(input, target, double(options.p), options.margin, weight, options.reduction));

/// The mean over classes of the binary cross-entropy of logits [*, C].
struct VESTA_API MultiLabelSoftMarginLoss : detail::Loss<MultiLabelSoftMarginLoss, WeightedLossOptions> {
  using detail::Loss<MultiLabelSoftMarginLoss, WeightedLossOptions>::Loss;
  Tensor forward(const Tensor& input, const Tensor& target);
};

struct GaussianNLLLossOptions {
  bool full = false;
  double eps = 1e-6;
  std::string reduction = "mean";
  VESTA_FIELDS(full, eps, reduction)
  static constexpr std::string_view shown = "";
};
/// 0.5 * (log(v) + (input - target) ** 2 / v), v = max(var, eps) (Nix and Weigend 1994).
struct VESTA_API GaussianNLLLoss : detail::Loss<GaussianNLLLoss, GaussianNLLLossOptions> {
  using detail::Loss<GaussianNLLLoss, GaussianNLLLossOptions>::Loss;
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var);
};

struct MarginLossOptions {
  double margin = 0;
  std::string reduction = "mean";
  VESTA_FIELDS(margin, reduction)
  static constexpr std::string_view shown = "";
};
/// max(0, -target * (input1 - input2) + margin).
struct VESTA_API MarginRankingLoss : detail::Loss<MarginRankingLoss, MarginLossOptions> {
  using detail::Loss<MarginRankingLoss, MarginLossOptions>::Loss;
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) {
    return margin_ranking_loss(input1, input2, target, options.margin, options.reduction);
  }
};
/// 1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1.
struct VESTA_API CosineEmbeddingLoss : detail::Loss<CosineEmbeddingLoss, MarginLossOptions> {
  using detail::Loss<CosineEmbeddingLoss, MarginLossOptions>::Loss;
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) {
    return cosine_embedding_loss(input1, input2, target, options.margin, options.reduction);
  }
};

struct TripletMarginLossOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  std::string reduction = "mean";
  VESTA_FIELDS(margin, p, eps, swap, reduction)
  static constexpr std::string_view shown = "";
};
/// max(0, |anchor - positive| - |anchor - negative| + margin) in the p-norm (Balntas et al. 2016).
struct VESTA_API TripletMarginLoss : detail::Loss<TripletMarginLoss, TripletMarginLossOptions> {
  using detail::Loss<TripletMarginLoss, TripletMarginLossOptions>::Loss;
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
    return triplet_margin_loss(anchor, positive, negative, options.margin, options.p, options.eps, options.swap,
                               options.reduction);
  }
};

struct TripletMarginWithDistanceLossOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function = {};  // none: the 2-norm
  double margin = 1;
  bool swap = false;
  std::string reduction = "mean";
  VESTA_FIELDS(margin, swap, reduction)
  static constexpr std::string_view shown = "";
};
/// The same with any distance.
class VESTA_API TripletMarginWithDistanceLoss
    : public detail::Loss<TripletMarginWithDistanceLoss, TripletMarginWithDistanceLossOptions> {
 public:
  TripletMarginWithDistanceLoss() : TripletMarginWithDistanceLoss(Options{}) {}
  VESTA_LAYER_CONSTRUCTORS(TripletMarginWithDistanceLoss)
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);

 private:
  std::shared_ptr<PairwiseDistance> distance_;
};

struct CTCLossOptions {
  int64_t blank = 0;
  std::string reduction = "mean";
  bool zero_infinity = false;
  VESTA_FIELDS(blank, reduction, zero_infinity)
  static constexpr std::string_view shown = "";
};
/// -log P(target | input) over all alignments (Graves et al. 2006): log_probs [T, N, C], targets [N, S] or one after
/// another, and the lengths of each.
struct VESTA_API CTCLoss : detail::Loss<CTCLoss, CTCLossOptions> {
  using detail::Loss<CTCLoss, CTCLossOptions>::Loss;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                 const std::vector<int64_t>& target_lengths) {
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank, options.reduction,
                    options.zero_infinity);
  }
};
#undef VESTA_LOSS

}  // namespace vesta::nn
