// The op list, activations. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_ACTIVATION(OP)                                                                                       \
  OP(POINTWISE, sigmoid, Sigmoid, (), (), inplace, out)                                                                \
  OP(POINTWISE, relu, Relu, (), (), inplace)                                                                           \
  OP(POINTWISE, leaky_relu, LeakyRelu, (RealScalar negative_slope = 0.01), (negative_slope), hidden, inplace)          \
  OP(POINTWISE, softplus, Softplus, (RealScalar beta = 1, RealScalar threshold = 20), (beta, threshold), functional,   \
     exact_out, casts(none, float32))                                                                                  \
  OP(POINTWISE, logsigmoid, LogSigmoid, (), (), functional, exact_out)                                                 \
  OP(POINTWISE, erf, Erf, (), (), inplace, out)                                                                        \
  OP(POINTWISE, erfc, Erfc, (), (), inplace, out)                                                                      \
  OP(POINTWISE, _gelu_erf, GeluErf, (), (), hidden)                                                                    \
  OP(POINTWISE, _gelu_tanh, GeluTanh, (), (), hidden)                                                                  \
  OP(METHOD, Tensor, gelu, (Kw<Text> approximate = "none"), (approximate), composite, functional, exact_out,           \
     accepts(kFloats))                                                                                                 \
  OP(POINTWISE, elu, Elu, (RealScalar alpha = 1, RealScalar scale = 1, RealScalar input_scale = 1),                    \
   (alpha, scale, input_scale), hidden, inplace, out)                                                                  \
  OP(POINTWISE, celu, Celu, (RealScalar alpha = 1.0), (alpha), no_method, inplace)                                     \
  OP(POINTWISE, selu, Selu, (), (), no_method, inplace)                                                                \
  OP(POINTWISE, silu, Silu, (), (), hidden, inplace, out)                                                              \
  OP(POINTWISE, mish, Mish, (), (), hidden, inplace, out)                                                              \
  OP(POINTWISE, hardtanh, Hardtanh, (RealScalar min_val = -1, RealScalar max_val = 1), (min_val, max_val), hidden,     \
   inplace, out)                                                                                                       \
  OP(POINTWISE, hardswish, Hardswish, (), (), hidden, inplace, out)                                                    \
  OP(POINTWISE, hardsigmoid, Hardsigmoid, (), (), hidden, inplace, out)                                                \
  OP(POINTWISE, softshrink, Softshrink, (RealScalar lambd = 0.5), (lambd), functional, exact_out)                      \
  OP(POINTWISE, hardshrink, Hardshrink, (RealScalar lambd = 0.5), (lambd), exact_out)                                  \
  OP(POINTWISE, threshold, Threshold, (RealScalar threshold, RealScalar value), (threshold, value), no_method,         \
   inplace, out)                                                                                                       \
  OP(POINTWISE, _prelu, Prelu, (const Tensor& weight), (weight), hidden)                                               \
  OP(POINTWISE, _gated, Gated, (const Tensor& gate), (gate), hidden)                                                   \
  OP(METHOD, Tensor, prelu, (const Tensor& weight), (weight), composite, accepts(kFloats))                             \
  OP(METHOD, Tensor, glu, (int64_t dim = -1), (dim), composite, functional, accepts(kFloats))                          \
  OP(METHOD, Tensor, softsign, (), (), composite, functional, accepts(kNumbers), gives(Gives::floating))               \
  OP(METHOD, Tensor, tanhshrink, (), (), composite, functional, accepts(kNumbers), gives(Gives::floating))             \
  OP(FUNCTION, Tensor, rrelu,                                                                                          \
     (const Tensor& input, RealScalar lower = 0.125, RealScalar upper = 0.3333333333333333, bool training = false,     \
      Generator* generator = nullptr), (input, lower, upper, training, generator), composite, accepts(kFloats))        \
  OP(FUNCTION, Tensor, rrelu_,                                                                                         \
     (const Tensor& input, RealScalar lower = 0.125, RealScalar upper = 0.3333333333333333, bool training = false,     \
      Generator* generator = nullptr), (input, lower, upper, training, generator), composite, accepts(kFloats))
