// Docs of the topic loss: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char _cross_entropy[] =
    "_cross_entropy(input, target, weight, ignore_index, label_smoothing): (loss [N], logsumexp [N]) of logits [N, "
    "C] and class numbers [N]. Error: a class outside [0, C) that is not ignore_index.";
inline constexpr char _cross_entropy_backward[] =
    "_cross_entropy_backward(grad, input, target, weight, logsumexp, ignore_index, label_smoothing): gradient of the "
    "logits.";
inline constexpr char cross_entropy[] =
    "cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0): "
    "cross-entropy of logits. input [N, C], [C] or [N, C, d1, ...]; target class numbers (int64) without the C "
    "dimension, or probabilities of input's shape.";
inline constexpr char nll_loss[] =
    "nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean'): -weight[target] * input[target] of "
    "log-probabilities [N, C], [C] or [N, C, d1, ...].";
inline constexpr char mse_loss[] =
    "mse_loss(input, target, reduction='mean'): (input - target)^2, its mean, or its sum. Error: shapes that differ.";
inline constexpr char binary_cross_entropy_with_logits[] =
    "binary_cross_entropy_with_logits(input, target, weight=None, reduction='mean', pos_weight=None): -(pos_weight * "
    "t * log s + (1 - t) * log(1 - s)) for s = sigmoid(input), without overflow. Error: shapes that differ.";

}  // namespace vesta::doc
