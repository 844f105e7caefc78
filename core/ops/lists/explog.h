// The op list, exponentials and logarithms. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_EXPLOG(OP)                                                                                           \
  OP(POINTWISE, exp, Exp, (), (), inplace, out, casts(none, float32))                                                  \
  OP(POINTWISE, log, Log, (), (), inplace, out, casts(none, float32))                                                  \
  OP(POINTWISE, log1p, Log1p, (), (), inplace, out, casts(none, float32))                                              \
  OP(POINTWISE, exp2, Exp2, (), (), inplace, out)                                                                      \
  OP(POINTWISE, expm1, Expm1, (), (), inplace, out, casts(none, float32))                                              \
  OP(POINTWISE, log2, Log2, (), (), inplace, out, casts(none, float32))                                                \
  OP(POINTWISE, log10, Log10, (), (), inplace, out, casts(none, float32))                                              \
  OP(POINTWISE, _logaddexp, LogAddExp, (const Tensor& other), (other), hidden)                                         \
  OP(METHOD_OUT, logaddexp, (const Tensor& other), (other), accepts(kFloats | kComplexes))                             \
  OP(POINTWISE, logaddexp2, LogAddExp2, (const Tensor& other), (other), out)                                           \
  OP(POINTWISE, xlogy, Xlogy, (const Operand& other), (other), inplace, out)                                           \
  OP(FORM, Tensor, xlogy, Scalar_Tensor, (Scalar self, const Tensor& other), (self, other),                            \
     xlogy(wrapped(self), other), out, accepts(kBool | kReals), gives(Gives::floating))                                \
  OP(POINTWISE, xlog1py, Xlog1py, (const Operand& other), (other), in_special, no_method, out)                         \
  OP(FORM, Tensor, xlog1py, Scalar_Tensor, (Scalar self, const Tensor& other), (self, other),                          \
     xlog1py(wrapped(self), other), in_special, out, accepts(kBool | kReals), gives(Gives::floating))                  \
  OP(POINTWISE, logit, Logit, (MaybeDouble eps = {}), (eps), inplace, out)                                             \
  OP(POINTWISE_FUNCTION, _binary_cross_entropy, BinaryCrossEntropy,                                                    \
     (const Tensor& input, const Tensor& target), (input, target), hidden)                                             \
  OP(POINTWISE_FUNCTION, _binary_cross_entropy_of_score, BinaryCrossEntropyOfScore,                                    \
     (const Tensor& input, const Tensor& target), (input, target), hidden)                                             \
  OP(POINTWISE_FUNCTION, _weighted_binary_cross_entropy_of_score, WeightedBinaryCrossEntropyOfScore,                   \
     (const Tensor& input, const Tensor& target, const Tensor& pos_weight), (input, target, pos_weight), hidden)       \
  OP(POINTWISE_FUNCTION, _squared_difference, SquaredDifference,                                                       \
     (const Tensor& input, const Tensor& target), (input, target), hidden)                                             \
  OP(POINTWISE_FUNCTION, _absolute_difference, AbsoluteDifference,                                                     \
     (const Tensor& input, const Tensor& target), (input, target), hidden)                                             \
  OP(POINTWISE_FUNCTION, _huber_difference, HuberDifference,                                                           \
     (const Tensor& input, const Tensor& target, RealScalar delta, RealScalar scale),                                  \
     (input, target, delta, scale), hidden)                                                                            \
  OP(POINTWISE_FUNCTION, _divergence, Divergence, (const Tensor& input, const Tensor& target), (input, target), hidden)\
  OP(POINTWISE_FUNCTION, _log_divergence, LogDivergence,                                                               \
     (const Tensor& input, const Tensor& target), (input, target), hidden)                                             \
  OP(POINTWISE_FUNCTION, _soft_margin, SoftMargin, (const Tensor& input, const Tensor& target), (input, target),       \
     hidden)                                                                                                           \
  OP(POINTWISE_FUNCTION, _exp_difference, ExpDifference, (const Tensor& input, const Tensor& target),                  \
     (input, target), hidden)                                                                                          \
  OP(POINTWISE_FUNCTION, _margin_difference, MarginDifference,                                                         \
     (const Tensor& input, const Tensor& target, RealScalar margin), (input, target, margin), hidden)
