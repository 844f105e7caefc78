// Docs of the topic softmax: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char _softmax[] = "_softmax(input, dim): exp(x) / sum(exp(x)) along dim, for floating dtypes.";
inline constexpr char _log_softmax[] = "_log_softmax(input, dim): x - log(sum(exp(x))) along dim, for floating dtypes.";
inline constexpr char _softmax_backward[] =
    "_softmax_backward(grad, output, dim, log): gradient of softmax (or log-softmax) from its output.";
inline constexpr char softmax[] =
    "softmax(input, dim, dtype=None): exp(x) / sum(exp(x)) along dim; rows sum to 1. Integers need a dtype.";
inline constexpr char log_softmax[] =
    "log_softmax(input, dim, dtype=None): x - log(sum(exp(x))) along dim, without overflow. Integers need a dtype.";

}  // namespace vesta::doc
