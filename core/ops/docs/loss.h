// Docs of the topic loss: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char _cross_entropy[] =
    "_cross_entropy(input, target, weight, ignore_index, label_smoothing, *, dtype=None): (loss [N], exp_sums [N, 2]) "
    "of logits [N, C] and class numbers [N]; exp_sums: a row's largest logit and sum(exp(x - it)). Of logits [N, C, M] "
    "and class numbers [N, M], losses [N, M] and exp_sums [N * M, 2]. dtype, that of the "
    "loss and of weight: input's, or float32 for 16-bit logits, which are read as they are. Error: a class outside [0, "
    "C) that is not ignore_index.";
inline constexpr char _cross_entropy_backward[] =
    "_cross_entropy_backward(grad, input, target, weight, exp_sums, total, ignore_index, label_smoothing): gradient of "
    "the logits, in their dtype; grad and weight have the loss's. grad is divided by total, if that is given.";
inline constexpr char _cross_entropy_mean[] =
    "_cross_entropy_mean(input, target, weight, ignore_index, label_smoothing, *, dtype=None): (mean, exp_sums, total) "
    "of what _cross_entropy takes; total: the weights of the rows that are not ignored, their number without weights.";
inline constexpr char _nll_loss[] =
    "_nll_loss(input, target, weight, ignore_index, reduction): (loss, total) of log-probabilities [N, C] or [N, C, M] "
    "and class numbers (int64); reduction 0: losses of target's shape, 1: their mean, 2: their sum; total as in "
    "_cross_entropy_mean, undefined unless it is needed. Error: a class outside [0, C) that is not ignore_index.";
inline constexpr char _nll_loss_backward[] =
    "_nll_loss_backward(grad, target, weight, total, ignore_index, sizes): gradient of the log-probabilities, of "
    "these sizes; grad is of target's shape, or one number for all. It is divided by total, if that is given.";
inline constexpr char _loss_sum[] =
    "_loss_sum(input, target, term, first, second, divisor): the sum of a loss's terms (LossTerm) with these "
    "parameters, of operands of one shape and dtype; their mean if divisor, their number, is not negative.";
inline constexpr char _loss_sum_backward[] =
    "_loss_sum_backward(grad, input, target, term, first, second, divisor, wanted): gradients of input (wanted & 1) "
    "and target (wanted & 2), undefined where they are not wanted.";
inline constexpr char cross_entropy[] =
    "cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0, *, "
    "dtype=None): cross-entropy of logits. input [N, C], [C] or [N, C, d1, ...]; target class numbers (int64) without "
    "the C dimension, or probabilities of input's shape. dtype: narrower operands count as cast to it; 16-bit logits "
    "give a float32 loss without a copy of them.";
inline constexpr char nll_loss[] =
    "nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean'): -weight[target] * input[target] of "
    "log-probabilities [N, C], [C] or [N, C, d1, ...].";
inline constexpr char mse_loss[] =
    "mse_loss(input, target, reduction='mean'): (input - target)^2, its mean, or its sum. Error: shapes that differ.";
inline constexpr char binary_cross_entropy_with_logits[] =
    "binary_cross_entropy_with_logits(input, target, weight=None, reduction='mean', pos_weight=None): -(pos_weight * "
    "t * log s + (1 - t) * log(1 - s)) for s = sigmoid(input), without overflow. Error: shapes that differ.";
inline constexpr char l1_loss[] =
    "l1_loss(input, target, reduction='mean'): |input - target|; operands broadcast. reduction is 'mean', 'sum' or "
    "'none'.";
inline constexpr char smooth_l1_loss[] =
    "smooth_l1_loss(input, target, reduction='mean', beta=1.0): d^2 / (2 beta) for d = |input - target| < beta, d - "
    "beta / 2 beyond (Girshick 2015). reduction is 'mean', 'sum' or 'none'.";
inline constexpr char huber_loss[] =
    "huber_loss(input, target, reduction='mean', delta=1.0): d^2 / 2 for d = |input - target| <= delta, delta (d - "
    "delta / 2) beyond (Huber 1964). reduction is 'mean', 'sum' or 'none'.";
inline constexpr char binary_cross_entropy[] =
    "binary_cross_entropy(input, target, weight=None, reduction='mean'): -(t log x + (1 - t) log(1 - x)) for "
    "probabilities x, logarithms at least -100. input and target of one shape. reduction is 'mean', 'sum' or 'none'.";
inline constexpr char kl_div[] =
    "kl_div(input, target, reduction='mean', log_target=False): the Kullback-Leibler divergence, target (log target "
    "- input) pointwise, of log-probabilities input. reduction is 'mean', 'sum' or 'none'.";
inline constexpr char poisson_nll_loss[] =
    "poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction='mean'): exp(x) - t x, or x - "
    "t log(x + eps) if not log_input; full adds Stirling's approximation of log(t!). reduction is 'mean', 'sum' or "
    "'none'.";
inline constexpr char hinge_embedding_loss[] =
    "hinge_embedding_loss(input, target, margin=1.0, reduction='mean'): input where target is 1, max(0, margin - "
    "input) where it is -1. reduction is 'mean', 'sum' or 'none'.";
inline constexpr char soft_margin_loss[] =
    "soft_margin_loss(input, target, reduction='mean'): log(1 + exp(-target input)) for targets 1 and -1. reduction "
    "is 'mean', 'sum' or 'none'.";
inline constexpr char margin_ranking_loss[] =
    "margin_ranking_loss(input1, input2, target, margin=0.0, reduction='mean'): max(0, margin - target (input1 - "
    "input2)). reduction is 'mean', 'sum' or 'none'.";
inline constexpr char cosine_embedding_loss[] =
    "cosine_embedding_loss(input1, input2, target, margin=0.0, reduction='mean'): 1 - cos where target is 1, max(0, "
    "cos - margin) where it is -1, for the rows of input1 and input2 [N, D] or [D], target [N] or []. reduction is "
    "'mean', 'sum' or 'none'.";
inline constexpr char triplet_margin_loss[] =
    "triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction='mean'): "
    "max(0, |a - p| - |a - n| + margin) for p-norms along the last dimension; swap takes the smaller of |a - n| and "
    "|p - n| (Balntas et al. 2016). reduction is 'mean', 'sum' or 'none'.";
inline constexpr char multi_margin_loss[] =
    "multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction='mean'): the sum of max(0, margin - "
    "x_y + x_j)^p over classes j other than y, divided by C. input [N, C] or [C], target [N] or []; weight [C]. "
    "reduction is 'mean', 'sum' or 'none'.";
inline constexpr char multilabel_margin_loss[] =
    "multilabel_margin_loss(input, target, reduction='mean'): the sum of max(0, 1 - x_y + x_j) over labels y and "
    "other classes j, divided by C. input and target [N, C] or [C]; a row's labels end at the first negative one. "
    "reduction is 'mean', 'sum' or 'none'.";
inline constexpr char _ctc_loss[] =
    "_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank): (loss [N], alpha) of log_probs [T, N, C] and "
    "targets (int64) [N, S] or joined [sum of target_lengths]; alpha is what _ctc_loss_backward needs, in a form of "
    "the device.";
inline constexpr char _ctc_loss_backward[] =
    "_ctc_loss_backward(grad, log_probs, targets, alpha, input_lengths, target_lengths, blank): gradient of log_probs, "
    "taken as logarithms of probabilities whose sum is 1: exp(log_probs) less the share of the alignments that pass "
    "through a class at a step. NaN for a target without an alignment, unless its grad is 0.";
inline constexpr char ctc_loss[] =
    "ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False): "
    "connectionist temporal classification (Graves et al. 2006). log_probs [T, N, C] or [T, C], targets [N, S] or "
    "joined [sum of target_lengths]; a loss [N] each, 'mean' divides by the target's length first.";

}  // namespace vesta::doc
