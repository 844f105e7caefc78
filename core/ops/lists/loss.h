// The op list, losses. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_LOSS(OP)                                                                                             \
  OP(FUNCTION, TensorPair, _cross_entropy,                                                                             \
     (const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index, double label_smoothing),    \
     (input, target, weight, ignore_index, label_smoothing), hidden, casts(float32, float32))                          \
  OP(FUNCTION, Tensor, _cross_entropy_backward,                                                                        \
     (const Tensor& grad, const Tensor& input, const Tensor& target, MaybeTensor weight, const Tensor& logsumexp,      \
      int64_t ignore_index, double label_smoothing),                                                                   \
     (grad, input, target, weight, logsumexp, ignore_index, label_smoothing), hidden)                                  \
  OP(FUNCTION, Tensor, cross_entropy,                                                                                  \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, int64_t ignore_index = -100,                 \
      Text reduction = "mean", double label_smoothing = 0),                                                            \
     (input, target, weight, ignore_index, reduction, label_smoothing), composite, hidden, casts(float32, float32))    \
  OP(FUNCTION, Tensor, nll_loss,                                                                                       \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, int64_t ignore_index = -100,                 \
      Text reduction = "mean"), (input, target, weight, ignore_index, reduction), composite, hidden,                   \
     casts(float32, float32))                                                                                          \
  OP(FUNCTION, Tensor, mse_loss, (const Tensor& input, const Tensor& target, Text reduction = "mean"),                 \
     (input, target, reduction), composite, hidden, casts(float32, float32))                                           \
  OP(FUNCTION, Tensor, binary_cross_entropy_with_logits,                                                               \
     (const Tensor& input, const Tensor& target, MaybeTensor weight = {}, Text reduction = "mean",                     \
      MaybeTensor pos_weight = {}), (input, target, weight, reduction, pos_weight), composite, hidden,                 \
     casts(none, float32))
