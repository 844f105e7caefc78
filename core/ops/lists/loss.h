// The op list, losses. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_LOSS(OP)                                                                                             \
  OP(FUNCTION, TensorPair, _cross_entropy,                                                                             \
     (const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index, double label_smoothing,     \
      Kw<MaybeDType> dtype = {}), (input, target, weight, ignore_index, label_smoothing, dtype), hidden,               \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, _cross_entropy_backward,                                                                        \
     (const Tensor& grad, const Tensor& input, const Tensor& target, MaybeTensor weight, const Tensor& exp_sums,       \
      MaybeTensor total, int64_t ignore_index, double label_smoothing),                                                \
     (grad, input, target, weight, exp_sums, total, ignore_index, label_smoothing), hidden, accepts(kFloats))          \
  OP(FUNCTION, TensorTriple, _cross_entropy_mean,                                                                      \
     (const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index, double label_smoothing,     \
      Kw<MaybeDType> dtype = {}), (input, target, weight, ignore_index, label_smoothing, dtype), composite, hidden,    \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, _nll_loss,                                                                                  \
     (const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index, int64_t reduction),         \
     (input, target, weight, ignore_index, reduction), composite, hidden, accepts(kFloats))                            \
  OP(FUNCTION, Tensor, _nll_loss_backward,                                                                             \
     (const Tensor& grad, const Tensor& target, MaybeTensor weight, MaybeTensor total, int64_t ignore_index,           \
      IntList sizes), (grad, target, weight, total, ignore_index, sizes), composite, hidden, accepts(kFloats))         \
  OP(FUNCTION, Tensor, _loss_sum,                                                                                      \
     (const Tensor& input, const Tensor& target, int64_t term, double first, double second, double divisor),           \
     (input, target, term, first, second, divisor), composite, hidden, accepts(kFloats))                               \
  OP(FUNCTION, TensorPair, _loss_sum_backward,                                                                         \
     (const Tensor& grad, const Tensor& input, const Tensor& target, int64_t term, double first, double second,        \
      double divisor, int64_t wanted), (grad, input, target, term, first, second, divisor, wanted), composite, hidden, \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, cross_entropy,                                                                                  \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, int64_t ignore_index = -100,                 \
      Text reduction = "mean", double label_smoothing = 0, Kw<MaybeDType> dtype = {}),                                 \
     (input, target, weight, ignore_index, reduction, label_smoothing, dtype), composite, hidden,                      \
     casts(float32_result, float32_result), accepts(kFloats))                                                          \
  OP(FUNCTION, Tensor, nll_loss,                                                                                       \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, int64_t ignore_index = -100,                 \
      Text reduction = "mean"), (input, target, weight, ignore_index, reduction), composite, hidden,                   \
     casts(float32, float32), accepts(kFloats))                                                                        \
  OP(FUNCTION, Tensor, mse_loss, (const Tensor& input, const Tensor& target, Text reduction = "mean"),                 \
     (input, target, reduction), composite, hidden, casts(float32, float32), accepts(kFloats | kComplexes))            \
  OP(FUNCTION, Tensor, binary_cross_entropy_with_logits,                                                               \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, Text reduction = "mean",                     \
      MaybeTensor pos_weight = {}), (input, target, weight, reduction, pos_weight), composite, hidden,                 \
     casts(none, float32), accepts(kFloats))                                                                           \
  OP(FUNCTION, Tensor, l1_loss, (const Tensor& input, const Tensor& target, Text reduction = "mean"),                  \
     (input, target, reduction), composite, hidden, casts(none, float32), accepts(kFloats | kComplexes),               \
     gives(Gives::real))                                                                                               \
  OP(FUNCTION, Tensor, smooth_l1_loss,                                                                                 \
     (const Tensor& input, const Tensor& target, Text reduction = "mean", double beta = 1),                            \
     (input, target, reduction, beta), composite, hidden, casts(none, float32), accepts(kFloats))                      \
  OP(FUNCTION, Tensor, huber_loss,                                                                                     \
     (const Tensor& input, const Tensor& target, Text reduction = "mean", double delta = 1),                           \
     (input, target, reduction, delta), composite, hidden, casts(none, float32), accepts(kFloats))                     \
  OP(FUNCTION, Tensor, binary_cross_entropy,                                                                           \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, Text reduction = "mean"),                    \
     (input, target, weight, reduction), composite, hidden, casts(none, float32), accepts(kFloats))                    \
  OP(FUNCTION, Tensor, kl_div,                                                                                         \
     (const Tensor& input, const Tensor& target, Text reduction = "mean", bool log_target = false),                    \
     (input, target, reduction, log_target), composite, hidden, casts(none, float32), accepts(kFloats | kComplexes))   \
  OP(FUNCTION, Tensor, poisson_nll_loss,                                                                               \
     (const Tensor& input, const Tensor& target, bool log_input = true, bool full = false, double eps = 1e-8,          \
      Text reduction = "mean"), (input, target, log_input, full, eps, reduction), composite, hidden,                   \
     casts(none, float32), accepts(kReals), gives(Gives::floating))                                                    \
  OP(FUNCTION, Tensor, hinge_embedding_loss,                                                                           \
     (const Tensor& input, const Tensor& target, double margin = 1, Text reduction = "mean"),                          \
     (input, target, margin, reduction), composite, hidden, casts(none, float32), accepts(kFloats))                    \
  OP(FUNCTION, Tensor, soft_margin_loss, (const Tensor& input, const Tensor& target, Text reduction = "mean"),         \
     (input, target, reduction), composite, hidden, casts(none, float32), accepts(kFloats))                            \
  OP(FUNCTION, Tensor, margin_ranking_loss,                                                                            \
     (const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0, Text reduction = "mean"),   \
     (input1, input2, target, margin, reduction), composite, hidden, casts(none, float32), accepts(kReals),            \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, cosine_embedding_loss,                                                                          \
     (const Tensor& input1, const Tensor& input2, const Tensor& target, double margin = 0, Text reduction = "mean"),   \
     (input1, input2, target, margin, reduction), composite, hidden, casts(none, float32), accepts(kBool | kReals),    \
     gives(Gives::floating))                                                                                           \
  OP(FUNCTION, Tensor, triplet_margin_loss,                                                                            \
     (const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin = 1, double p = 2,           \
      double eps = 1e-6, bool swap = false, Text reduction = "mean"),                                                  \
     (anchor, positive, negative, margin, p, eps, swap, reduction), composite, hidden, casts(none, float32),           \
     accepts(kReals), gives(Gives::floating))                                                                          \
  OP(FUNCTION, Tensor, multi_margin_loss,                                                                              \
     (const Tensor& input, const Tensor& target, double p = 1, double margin = 1, MaybeTensor weight = {},             \
      Text reduction = "mean"), (input, target, p, margin, weight, reduction), composite, hidden,                      \
     casts(none, float32), accepts(kFloats))                                                                           \
  OP(FUNCTION, Tensor, multilabel_margin_loss, (const Tensor& input, const Tensor& target, Text reduction = "mean"),   \
     (input, target, reduction), composite, hidden, casts(none, float32), accepts(kFloats))                            \
  OP(FUNCTION, TensorPair, _ctc_loss,                                                                                  \
     (const Tensor& log_probs, const Tensor& targets, IntTuple input_lengths, IntTuple target_lengths, int64_t blank), \
     (log_probs, targets, input_lengths, target_lengths, blank), hidden,                                               \
     accepts(kWideFloats))                                                                                             \
  OP(FUNCTION, Tensor, _ctc_loss_backward,                                                                             \
     (const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& alpha, IntTuple input_lengths, \
      IntTuple target_lengths, int64_t blank),                                                                         \
     (grad, log_probs, targets, alpha, input_lengths, target_lengths, blank), hidden,                                  \
     accepts(kWideFloats))                                                                                             \
  OP(FUNCTION, Tensor, ctc_loss,                                                                                       \
     (const Tensor& log_probs, const Tensor& targets, IntTuple input_lengths, IntTuple target_lengths,                 \
      int64_t blank = 0, Text reduction = "mean", bool zero_infinity = false),                                         \
     (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity), composite, hidden,          \
     casts(none, float32), accepts(kFloats))
