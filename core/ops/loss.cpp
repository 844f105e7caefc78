#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>

#include <algorithm>
#include <string_view>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/loss.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/loss_terms.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_LOSS)

namespace {

/// Returns what to write instead of a target of a wrong shape.
const char* advice_on_target(const Tensor& input, const Tensor& target, std::string_view op) {
  if (input.dim() != 2) return "";
  if (std::ranges::equal(input.sizes(), target.sizes()) && input.sizes()[1] != 1) {
    return op == "cross_entropy" ? " Class probabilities must be of a floating-point dtype: use target.float()."
                                 : " For one-hot targets use target.argmax(1).";
  }
  bool column = target.dim() == 2 && target.sizes()[1] == 1 && target.sizes()[0] == input.sizes()[0];
  return column ? " Use target.squeeze(1)." : "";
}

/// The ops of the terms, in the order of LossTerm.
const PointwiseInfo* const kTerms[] = {
    &ops::_squared_difference.info,
    &ops::_absolute_difference.info,
    &ops::_huber_difference.info,
    &ops::_binary_cross_entropy.info,
    &ops::_binary_cross_entropy_of_score.info,
    &ops::_divergence.info,
    &ops::_log_divergence.info,
    &ops::_soft_margin.info,
    &ops::_exp_difference.info,
    &ops::_margin_difference.info,
};

}  // namespace

const PointwiseInfo& info_of_term(int64_t term, const char* op) {
  VESTA_CHECK(term >= 0 && term < int64_t(std::size(kTerms)), value, op, ": expected a term from 0 to ",
              std::size(kTerms) - 1, ", got ", term, ".");
  return *kTerms[term];
}

void check_loss_sum(const Tensor& input, const Tensor& target, int64_t term, const char* op) {
  info_of_term(term, op);
  check_floating(input, op);
  VESTA_CHECK(input.dtype() == target.dtype(), type, op, ": expected operands of one dtype, got ", input.dtype(),
              " (input) and ", target.dtype(), " (target).");
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), value, op, ": expected operands of one shape, got ",
              input.sizes(), " (input) and ", target.sizes(), " (target).");
}

void check_nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction) {
  check_floating(input, "nll_loss");
  check_class_target(input, target, weight, input.dtype(), "nll_loss");
  VESTA_CHECK(target.dtype() == DType::int64, type, "_nll_loss: expected target of int64, got ", target.dtype(), ".");
  VESTA_CHECK(reduction >= 0 && reduction <= 2, value, "_nll_loss: expected a reduction from 0 to 2, got ", reduction,
              ".");
}

void check_nll_loss_backward(const Tensor& grad, const Tensor& target, IntSpan sizes) {
  constexpr const char* op = "_nll_loss_backward";
  const size_t dims = size_t(target.dim()) + 1;
  VESTA_CHECK((dims == 2 || dims == 3) && sizes.size() == dims && sizes[0] == target.size(0) &&
                  (dims == 2 || sizes[2] == target.size(1)) && target.dtype() == DType::int64,
              value, op, ": expected int64 target [N] or [N, M] and sizes [N, C] or [N, C, M], got ", target.sizes(),
              " of ", target.dtype(), " and ", sizes, ".");
  VESTA_CHECK(grad.dim() == 0 || std::ranges::equal(grad.sizes(), target.sizes()), value, op,
              ": expected grad of target's shape ", target.sizes(), " or a number, got ", grad.sizes(), ".");
  check_floating(grad, op);
}

void check_class_target(const Tensor& input, const Tensor& target, const Tensor& weight, DType dtype, const char* op) {
  const bool columns = input.dim() == 3 && target.dim() == 2 && input.sizes()[2] == target.sizes()[1];
  VESTA_CHECK((columns || (input.dim() == 2 && target.dim() == 1)) && input.sizes()[0] == target.sizes()[0], value, op,
              ": Expected input [N, C] and target [N], or [N, C, M] and [N, M], got ", input.sizes(), " and ",
              target.sizes(), " of dtype ", target.dtype(), ".", advice_on_target(input, target, op));
  VESTA_CHECK(target.dtype() == DType::int64 || target.dtype() == DType::uint8, type, op,
              ": expected target of int64 class numbers, got ", target.dtype(), ". Use target.long().");
  if (!weight.defined()) return;
  VESTA_CHECK(weight.dim() == 1 && weight.sizes()[0] == input.sizes()[1], value, op,
              ": weight tensor should be defined either for all ", input.sizes()[1], " classes or no classes, got ",
              weight.sizes(), ".");
  VESTA_CHECK(weight.dtype() == dtype, type, op, ": expected weight of dtype ", dtype, ", got ", weight.dtype(), ".");
}

DType check_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, double smoothing,
                          MaybeDType dtype) {
  check_floating(input, "cross_entropy");
  const DType own = input.dtype(), wide = statistics_dtype(own), loss = dtype.value_or(own);
  VESTA_CHECK(loss == own || loss == wide, type, "cross_entropy: expected a loss of ", own, " or ", wide,
              " for logits of ", own, ", got ", loss, " (dtype).");
  check_class_target(input, target, weight, loss, "cross_entropy");
  VESTA_CHECK(smoothing >= 0 && smoothing <= 1, value,
              "cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: ", smoothing, ".");
  return loss;
}

void check_cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target, const Tensor& weight,
                                  const Tensor& exp_sums, double smoothing) {
  check_cross_entropy(input, target, weight, smoothing, grad.dtype());
  const int64_t rows = target.numel();
  VESTA_CHECK(grad.numel() == rows, value, "_cross_entropy_backward: expected grad of ", rows, " numbers, got ",
              grad.sizes(), ".");
  const DType wide = statistics_dtype(input.dtype());
  VESTA_CHECK(std::ranges::equal(exp_sums.sizes(), exp_sums_shape(input)) && exp_sums.dtype() == wide, value,
              "_cross_entropy_backward: expected exp_sums ", exp_sums_shape(input), " of ", wide, ", got ",
              exp_sums.sizes(), " of ", exp_sums.dtype(), ".");
}

std::vector<int64_t> check_ctc_loss(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
                                    IntSpan target_lengths, int64_t blank) {
  constexpr const char* op = "ctc_loss";
  VESTA_CHECK(log_probs.dim() == 3, runtime, op, ": expected log_probs [T, N, C] or [T, C], got ", log_probs.sizes(),
              ".");
  VESTA_CHECK(targets.dtype() == DType::int64 && (targets.dim() == 1 || targets.dim() == 2), runtime, op,
              ": expected targets [N, S] or [sum of target_lengths] of int64, got ", targets.sizes(), " of ",
              targets.dtype(), ".");
  const int64_t steps = log_probs.size(0), n = log_probs.size(1), classes = log_probs.size(2);
  VESTA_CHECK(blank >= 0 && blank < classes, runtime, op, ": blank must be in label range, got ", blank, " of ",
              classes, " classes.");
  VESTA_CHECK(int64_t(input_lengths.size()) == n && int64_t(target_lengths.size()) == n, runtime, op,
              ": input_lengths and target_lengths must be of size batch_size ", n, ", got ", input_lengths.size(),
              " and ", target_lengths.size(), ".");
  const bool joined = targets.dim() == 1;
  std::vector<int64_t> begins;
  begins.reserve(size_t(n));
  int64_t at = 0;
  for (size_t i = 0; i < size_t(n); ++i) {
    VESTA_CHECK(input_lengths[i] >= 0 && input_lengths[i] <= steps, runtime, op,
                ": Expected input_lengths to have value at most ", steps, ", but got value ", input_lengths[i], ".");
    const int64_t length = target_lengths[i], begin = joined ? at : int64_t(i) * targets.size(1),
                  most = joined ? targets.numel() - at : targets.size(1);
    VESTA_CHECK(length >= 0 && length <= most && begin + length <= targets.numel(), runtime, op,
                ": Expected tensor to have size at least ", length, " at dimension 1, but got targets ",
                targets.sizes(), ".");
    begins.push_back(begin);
    at += length;
  }
  return begins;
}

}  // namespace vesta
