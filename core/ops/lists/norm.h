// The op list, normalisation. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_NORM(OP)                                                                                             \
  OP(FUNCTION, TensorTriple, native_batch_norm,                                                                        \
     (const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean, MaybeTensor running_var,    \
      bool training, double momentum, double eps),                                                                     \
     (input, weight, bias, running_mean, running_var, training, momentum, eps), out, accepts(kFloats),                 \
     gives(Gives::same, Gives::statistics, Gives::statistics))                                                         \
  OP(FUNCTION, TensorTriple, _batch_norm_evaluation,                                                                   \
     (const Tensor& input, MaybeTensor weight, MaybeTensor bias, const Tensor& running_mean,                           \
      const Tensor& running_var, double eps), (input, weight, bias, running_mean, running_var, eps), composite,        \
     hidden, accepts(kFloats), gives(Gives::same, Gives::statistics, Gives::statistics))                               \
  OP(FUNCTION, TensorTriple, _batch_norm_backward,                                                                     \
     (const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean, const Tensor& invstd,           \
      bool training), (grad, input, weight, mean, invstd, training), hidden, accepts(kFloats))                         \
  OP(FUNCTION, Tensor, batch_norm,                                                                                     \
     (const Tensor& input, MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor weight = {},                 \
      MaybeTensor bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5),                         \
     (input, running_mean, running_var, weight, bias, training, momentum, eps), composite, hidden, accepts(kFloats))   \
  OP(FUNCTION, TensorTriple, native_layer_norm,                                                                        \
     (const Tensor& input, IntTuple normalized_shape, MaybeTensor weight, MaybeTensor bias, double eps),               \
     (input, normalized_shape, weight, bias, eps), composite, accepts(kFloats),                                        \
     gives(Gives::same, Gives::statistics, Gives::statistics))                                                         \
  OP(FUNCTION, TensorTriple, _layer_norm_backward,                                                                     \
     (const Tensor& grad, const Tensor& input, IntList normalized_shape, MaybeTensor weight, const Tensor& mean,       \
      const Tensor& rstd), (grad, input, normalized_shape, weight, mean, rstd), composite, hidden, accepts(kFloats))   \
  OP(FUNCTION, Tensor, layer_norm,                                                                                     \
     (const Tensor& input, IntTuple normalized_shape, MaybeTensor weight = {}, MaybeTensor bias = {},                  \
      double eps = 1e-5), (input, normalized_shape, weight, bias, eps), composite, functional, casts(none, float32),   \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, _unit_vectors, (const Tensor& input, int64_t dim, double eps, bool raises_value),           \
     (input, dim, eps, raises_value), composite, hidden, casts(none, float32), accepts(kFloats),                       \
     gives(Gives::same, Gives::statistics))                                                                            \
  OP(FUNCTION, Tensor, _unit_vectors_backward,                                                                         \
     (const Tensor& grad, const Tensor& input, const Tensor& size, int64_t dim, double eps, bool raises_value),        \
     (grad, input, size, dim, eps, raises_value), composite, hidden, accepts(kFloats))                                 \
  OP(FUNCTION, Tensor, normalize, (const Tensor& input, double p = 2, IntList dim = 1, double eps = 1e-12),            \
     (input, p, dim, eps), composite, functional, out, accepts(kFloats | kComplexes))                                  \
  OP(FUNCTION, TensorTriple, native_group_norm,                                                                        \
     (const Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t N, int64_t C, int64_t HxW, int64_t group,     \
      double eps), (input, weight, bias, N, C, HxW, group, eps), composite, accepts(kFloats),                          \
     gives(Gives::same, Gives::statistics, Gives::statistics))                                                         \
  OP(FUNCTION, TensorTriple, _group_norm_backward,                                                                     \
     (const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean, const Tensor& rstd, int64_t N,  \
      int64_t C, int64_t HxW, int64_t group), (grad, input, weight, mean, rstd, N, C, HxW, group), composite, hidden,  \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, group_norm,                                                                                     \
     (const Tensor& input, int64_t num_groups, MaybeTensor weight = {}, MaybeTensor bias = {}, double eps = 1e-5,      \
      bool cudnn_enabled = true), (input, num_groups, weight, bias, eps, cudnn_enabled), composite,                    \
     casts(none, float32), accepts(kFloats))                                                                           \
  OP(FUNCTION, Tensor, instance_norm,                                                                                  \
     (const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean, MaybeTensor running_var,    \
      bool use_input_stats, double momentum, double eps, bool cudnn_enabled),                                          \
     (input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled), composite,       \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, _fused_rms_norm,                                                                            \
     (const Tensor& input, IntTuple normalized_shape, MaybeTensor weight, MaybeDouble eps),                            \
     (input, normalized_shape, weight, eps), composite, hidden, accepts(kFloats))                                      \
  OP(FUNCTION, TensorPair, _rms_norm_backward,                                                                         \
     (const Tensor& grad, const Tensor& input, IntList normalized_shape, MaybeTensor weight, const Tensor& rstd),      \
     (grad, input, normalized_shape, weight, rstd), composite, hidden, accepts(kFloats))                               \
  OP(FUNCTION, Tensor, rms_norm,                                                                                       \
     (const Tensor& input, IntTuple normalized_shape, MaybeTensor weight = {}, MaybeDouble eps = {}),                  \
     (input, normalized_shape, weight, eps), composite, accepts(kFloats | kComplexes))
