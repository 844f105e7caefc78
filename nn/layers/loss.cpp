#include <vesta/nn/layers/loss.h>

#include <cmath>
#include <numbers>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>

namespace vesta::nn {
namespace {

Tensor reduced(const Tensor& losses, const std::string& reduction) {
  return reduction == "none" ? losses : reduction == "mean" ? mean(losses) : sum(losses);
}

}  // namespace

void detail::check_reduction(const std::string& op, const std::string& reduction, bool has_batchmean) {
  VESTA_CHECK(
      reduction == "none" || reduction == "mean" || reduction == "sum" || (has_batchmean && reduction == "batchmean"),
      value, op, ": ", reduction, " is not a valid value for reduction");
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) {
  const bool batch = options.reduction == "batchmean";
  const Tensor loss = kl_div(input, target, batch ? "sum" : options.reduction, options.log_target);
  return batch && input.dim() > 0 ? div(loss, input.size(0)) : loss;
}

Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  Tensor losses = neg(add(mul(target, logsigmoid(input)), mul(rsub(target, 1), logsigmoid(neg(input)))));
  if (weight.defined()) losses = mul(losses, weight);
  return reduced(div(sum(losses, -1), input.size(-1)), options.reduction);
}

Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target, const Tensor& var_) {
  Tensor var = var_;
  VESTA_CHECK(!has_values(var) || !any(lt(var, 0)).item<bool>(), value,
              "GaussianNLLLoss: var has negative entry/entries");
  if (!std::ranges::equal(var.sizes(), input.sizes())) {
    const IntSpan lines = input.sizes().first(size_t(std::max<int64_t>(input.dim() - 1, 0)));
    if (std::ranges::equal(var.sizes(), lines)) {
      var = unsqueeze(var, -1);  // one variance for the last dimension
    } else {
      VESTA_CHECK(
          var.dim() == input.dim() && std::ranges::equal(var.sizes().first(lines.size()), lines) && var.size(-1) == 1,
          value, "GaussianNLLLoss: var is of incorrect size, got ", var.sizes(), " for an input of ", input.sizes(),
          ".");
    }
  }
  var = add(clamp(var.detach(), options.eps), sub(var, var.detach()));  // the clamp has the gradient 1 everywhere
  Tensor losses = mul(add(log(var), div(pow(sub(input, target), 2), var)), 0.5);
  if (options.full) losses = add(losses, 0.5 * std::log(2 * std::numbers::pi));
  return reduced(losses, options.reduction);
}

TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(Options o) : Loss(std::move(o)) {
  VESTA_CHECK(options.margin > 0, value, "TripletMarginWithDistanceLoss: margin must be greater than 0, got ",
              options.margin, ".");
  if (!options.distance_function) {
    distance_ = register_module("distance_function", std::make_shared<PairwiseDistance>());
  }
}

Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
  VESTA_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), runtime,
              "TripletMarginWithDistanceLoss: expected tensors of the same number of dimensions, got ", anchor.dim(),
              ", ", positive.dim(), " and ", negative.dim(), ".");
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return distance_ ? (*distance_)(a, b) : options.distance_function(a, b);
  };
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (options.swap) far = minimum(far, distance(positive, negative));
  return reduced(clamp(sub(add(near, options.margin), far), 0), options.reduction);
}

}  // namespace vesta::nn
