// Options of losses.
#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <variant>

#include <torch/types.h>

namespace torch::nn {
namespace detail {

/// What becomes of the losses of a batch.
using reduction_t = std::variant<enumtype::kNone, enumtype::kMean, enumtype::kSum>;

}  // namespace detail

/// Declares the reduction of a loss.
#define TORCH_REDUCTION              \
 public:                             \
  using reduction_t = detail::reduction_t; \
  TORCH_ARG(reduction_t, reduction) = torch::kMean

/// Declares the constructors of options for which a reduction may stand: `MSELoss(torch::kSum)`.
#define TORCH_FROM_REDUCTION(Name)                      \
 public:                                                \
  Name() = default;                                     \
  template <class Kind>                                 \
    requires(std::is_constructible_v<reduction_t, Kind> && std::is_empty_v<Kind>) \
  Name(Kind kind) : reduction_(kind) {}                 \
  Name(reduction_t kind) : reduction_(kind) {}

struct L1LossOptions {
  TORCH_REDUCTION;
  TORCH_FROM_REDUCTION(L1LossOptions)
};
struct MSELossOptions {
  TORCH_REDUCTION;
  TORCH_FROM_REDUCTION(MSELossOptions)
};
struct MultiLabelMarginLossOptions {
  TORCH_REDUCTION;
  TORCH_FROM_REDUCTION(MultiLabelMarginLossOptions)
};
struct SoftMarginLossOptions {
  TORCH_REDUCTION;
  TORCH_FROM_REDUCTION(SoftMarginLossOptions)
};
struct SmoothL1LossOptions {
  TORCH_REDUCTION;
  TORCH_ARG(std::optional<double>, beta) = std::nullopt;
  TORCH_FROM_REDUCTION(SmoothL1LossOptions)
};
struct HuberLossOptions {
  TORCH_REDUCTION;
  TORCH_ARG(double, delta) = 1;
  TORCH_FROM_REDUCTION(HuberLossOptions)
};
struct KLDivLossOptions {
  using reduction_t = std::variant<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(bool, log_target) = false;
  TORCH_FROM_REDUCTION(KLDivLossOptions)
};
struct BCELossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_REDUCTION;
};
struct BCEWithLogitsLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_REDUCTION;
  TORCH_ARG(Tensor, pos_weight) = {};
};
struct HingeEmbeddingLossOptions {
  TORCH_ARG(double, margin) = 1;
  TORCH_REDUCTION;
};
struct MultiMarginLossOptions {
  TORCH_ARG(int64_t, p) = 1;
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(Tensor, weight) = {};
  TORCH_REDUCTION;
};
struct CosineEmbeddingLossOptions {
  TORCH_ARG(double, margin) = 0;
  TORCH_REDUCTION;
};
struct MultiLabelSoftMarginLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_REDUCTION;
};
struct TripletMarginLossOptions {
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(double, p) = 2;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, swap) = false;
  TORCH_REDUCTION;
};
struct TripletMarginWithDistanceLossOptions {
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TORCH_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
  TORCH_ARG(double, margin) = 1;
  TORCH_ARG(bool, swap) = false;
  TORCH_REDUCTION;
};
struct CTCLossOptions {
  TORCH_ARG(int64_t, blank) = 0;
  TORCH_REDUCTION;
  TORCH_ARG(bool, zero_infinity) = false;
};
struct PoissonNLLLossOptions {
  TORCH_ARG(bool, log_input) = true;
  TORCH_ARG(bool, full) = false;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_REDUCTION;
};
struct MarginRankingLossOptions {
  TORCH_ARG(double, margin) = 0;
  TORCH_REDUCTION;
};
struct NLLLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_REDUCTION;
};
struct CrossEntropyLossOptions {
  TORCH_ARG(Tensor, weight) = {};
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_REDUCTION;
  TORCH_ARG(double, label_smoothing) = 0;
};
#undef TORCH_FROM_REDUCTION
#undef TORCH_REDUCTION

namespace functional {

using L1LossFuncOptions = L1LossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using MSELossFuncOptions = MSELossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;

}  // namespace functional
}  // namespace torch::nn
