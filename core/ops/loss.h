// Losses, and checks of their operands that all devices share.
#pragma once
#include <vector>

#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/loss.h>
#include <vesta/core/ops/pointwise.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_LOSS)

/// Returns the record of the op of a term (loss_terms.h). Error(value): a number that is no term's.
VESTA_API const PointwiseInfo& info_of_term(int64_t term, const char* op);
/// Checks the operands of a sum of terms. Error(value, type): shapes or dtypes that differ.
VESTA_API void check_loss_sum(const Tensor& input, const Tensor& target, int64_t term, const char* op);
/// Checks the operands of _nll_loss, all but the values of target.
VESTA_API void check_nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t reduction);
/// Checks the operands of _nll_loss_backward.
VESTA_API void check_nll_loss_backward(const Tensor& grad, const Tensor& target, IntSpan sizes);

/// Checks logits [N, C] or [N, C, inner], class numbers [N] or [N, inner], and class weights [C] of `dtype`.
VESTA_API void check_class_target(const Tensor& input, const Tensor& target, const Tensor& weight, DType dtype,
                                  const char* op);
/// Returns the shape of cross-entropy's second result for logits [N, C] or [N, C, inner]: for each class number the
/// largest logit (0 if it is -inf) and the sum of exp(x - it), in the dtype of statistics. Their logsumexp, a single
/// number, would lose digits.
inline Dims exp_sums_shape(const Tensor& input) {
  return {input.sizes()[0] * (input.dim() == 3 ? input.sizes()[2] : 1), 2};
}
/// Checks the operands of cross-entropy, all but the values of target; returns the dtype of the loss and of
/// the weights, which is the logits' or, for 16-bit ones, float32 too.
VESTA_API DType check_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, double smoothing,
                                    MaybeDType dtype);
/// Checks the operands of the gradient of a loss of grad's dtype, exp_sums being what cross-entropy returned.
VESTA_API void check_cross_entropy_backward(const Tensor& grad, const Tensor& input, const Tensor& target,
                                            const Tensor& weight, const Tensor& exp_sums, double smoothing);

/// Checks the operands of _ctc_loss, all but the values of targets; returns where the target of each sequence begins
/// in `targets`.
VESTA_API std::vector<int64_t> check_ctc_loss(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
                                              IntSpan target_lengths, int64_t blank);
/// Returns the losses of _ctc_loss, computed with other ops: gradients of any order are theirs.
VESTA_API Tensor ctc_loss_in_ops(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
                                 IntSpan target_lengths, int64_t blank);

}  // namespace vesta
