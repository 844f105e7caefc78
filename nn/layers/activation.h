// Activations: functions of each element, or of the elements of a dimension, as modules.
#pragma once
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/nn/layer.h>

namespace vesta::nn {

/// The options of activations without parameters: `inplace` writes the result into the input.
struct ActivationOptions {
  bool inplace = false;
  VESTA_FIELDS(inplace)
  static constexpr std::string_view shown = "[inplace={inplace}]";
};
struct QuietActivationOptions {  // of layers whose repr says nothing about it
  bool inplace = false;
  VESTA_FIELDS(inplace)
  static constexpr std::string_view shown = "";
};

/// Defines a module over an op of one tensor.
#define VESTA_FUNCTION_LAYER(Name, function)                                                   \
  struct VESTA_API Name : LayerOf<Name> {                                                        \
    Tensor forward(const Tensor& input) override { return vesta::function(input); }            \
  }
VESTA_FUNCTION_LAYER(Tanh, tanh);
VESTA_FUNCTION_LAYER(Sigmoid, sigmoid);
VESTA_FUNCTION_LAYER(LogSigmoid, logsigmoid);
VESTA_FUNCTION_LAYER(Softsign, softsign);
VESTA_FUNCTION_LAYER(Tanhshrink, tanhshrink);
#undef VESTA_FUNCTION_LAYER

/// Defines a module over a pointwise op that may run in place; what follows the op are its parameters.
#define VESTA_ACTIVATION(Name, OptionsOfIt, op, ...)                                                          \
  struct VESTA_API Name : LayerOf<Name, OptionsOfIt> {                                                          \
    using LayerOf::LayerOf;                                                                                       \
    Tensor forward(const Tensor& input) override {                                                            \
      if (!options.inplace) return vesta::op(input __VA_OPT__(, ) __VA_ARGS__);                              \
      ops::op(input __VA_OPT__(, ) __VA_ARGS__, Out{&input, Out::inplace});                                  \
      return input;                                                                                          \
    }                                                                                                         \
  }
VESTA_ACTIVATION(ReLU, ActivationOptions, relu);
VESTA_ACTIVATION(SELU, ActivationOptions, selu);
VESTA_ACTIVATION(SiLU, ActivationOptions, silu);
VESTA_ACTIVATION(Mish, ActivationOptions, mish);
VESTA_ACTIVATION(ReLU6, ActivationOptions, hardtanh, 0.0, 6.0);
VESTA_ACTIVATION(Hardswish, QuietActivationOptions, hardswish);
VESTA_ACTIVATION(Hardsigmoid, QuietActivationOptions, hardsigmoid);

struct ELUOptions {
  double alpha = 1;
  bool inplace = false;
  VESTA_FIELDS(alpha, inplace)
  static constexpr std::string_view shown = "alpha={alpha}[, inplace={inplace}]";
};
VESTA_ACTIVATION(ELU, ELUOptions, elu, options.alpha, 1.0, 1.0);
using CELUOptions = ELUOptions;
VESTA_ACTIVATION(CELU, CELUOptions, celu, options.alpha);

struct LeakyReLUOptions {
  double negative_slope = 0.01;
  bool inplace = false;
  VESTA_FIELDS(negative_slope, inplace)
  static constexpr std::string_view shown = "negative_slope={negative_slope}[, inplace={inplace}]";
};
VESTA_ACTIVATION(LeakyReLU, LeakyReLUOptions, leaky_relu, options.negative_slope);

struct HardtanhOptions {
  double min_val = -1, max_val = 1;
  bool inplace = false;
  VESTA_FIELDS(min_val, max_val, inplace)
  static constexpr std::string_view shown = "min_val={min_val}, max_val={max_val}[, inplace={inplace}]";
};
VESTA_ACTIVATION(Hardtanh, HardtanhOptions, hardtanh, options.min_val, options.max_val);

struct ThresholdOptions {
  double threshold, value;
  bool inplace = false;
  VESTA_FIELDS(threshold, value, inplace)
  static constexpr std::string_view shown = "threshold={threshold}, value={value}[, inplace={inplace}]";
};
VESTA_ACTIVATION(Threshold, ThresholdOptions, threshold, options.threshold, options.value);
#undef VESTA_ACTIVATION

struct SoftplusOptions {
  double beta = 1, threshold = 20;
  VESTA_FIELDS(beta, threshold)
};
/// The module log(1 + e ** (beta * x)) / beta, elementwise; x itself where beta * x > threshold.
struct VESTA_API Softplus : LayerOf<Softplus, SoftplusOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return softplus(input, options.beta, options.threshold); }
};

struct GELUOptions {
  std::string approximate = "none";
  VESTA_FIELDS(approximate)
};
/// The module x * P(X <= x) of a standard normal X (Hendrycks and Gimpel 2016), or its approximation by "tanh".
struct VESTA_API GELU : LayerOf<GELU, GELUOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return gelu(input, options.approximate); }
};

struct ShrinkOptions {
  double lambd = 0.5;
  VESTA_FIELDS(lambd)
  static constexpr std::string_view shown = "{lambd}";
};
/// The module that zeroes what lies in [-lambd, lambd].
struct VESTA_API Hardshrink : LayerOf<Hardshrink, ShrinkOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return hardshrink(input, options.lambd); }
};
/// The module that moves values towards 0 by lambd, and zeroes what lies in [-lambd, lambd].
struct VESTA_API Softshrink : LayerOf<Softshrink, ShrinkOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return softshrink(input, options.lambd); }
};

struct GLUOptions {
  int64_t dim = -1;
  VESTA_FIELDS(dim)
};
/// The module a * sigmoid(b) of the halves a and b of a dimension (Dauphin et al. 2017).
struct VESTA_API GLU : LayerOf<GLU, GLUOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override { return glu(input, options.dim); }
};

struct SoftmaxOptions {
  MaybeInt dim = {};  // none: 0 for inputs of 0, 1 or 3 dimensions, else 1
  VESTA_FIELDS(dim)
  /// Returns the dimension for this input.
  int64_t dim_of(const Tensor& input) const {
    return dim.value_or(input.dim() == 0 || input.dim() == 1 || input.dim() == 3 ? 0 : 1);
  }
};
/// The module e ** x, divided by its sum along a dimension.
struct VESTA_API Softmax : LayerOf<Softmax, SoftmaxOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};
/// The module softmax(-x).
struct VESTA_API Softmin : LayerOf<Softmin, SoftmaxOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};
/// The module log(softmax(x)).
struct VESTA_API LogSoftmax : LayerOf<LogSoftmax, SoftmaxOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};
/// The module that applies softmax to the channels of images [N, C, H, W] or [C, H, W].
struct VESTA_API Softmax2d : LayerOf<Softmax2d> {
  Tensor forward(const Tensor& input) override;
};

struct RReLUOptions {
  double lower = 1.0 / 8, upper = 1.0 / 3;
  bool inplace = false;
  VESTA_FIELDS(lower, upper, inplace)
  static constexpr std::string_view shown = "lower={lower}, upper={upper}[, inplace={inplace}]";
};
/// The module that multiplies what is negative by a draw from U(lower, upper) while training, by their mean otherwise
/// (Xu et al. 2015).
struct VESTA_API RReLU : LayerOf<RReLU, RReLUOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

struct PReLUOptions {
  int64_t num_parameters = 1;
  double init = 0.25;
  DType dtype = DType::float32;
  VESTA_FIELDS(num_parameters, init)
  static constexpr std::string_view shown = "num_parameters={num_parameters}";
};
/// The module that multiplies what is negative by a parameter `weight` [num_parameters], one for all channels or one
/// for each (He et al. 2015).
struct VESTA_API PReLU : LayerOf<PReLU, PReLUOptions> {
  explicit PReLU(const Options& o = {});
  Tensor forward(const Tensor& input) override { return prelu(input, weight); }
  Tensor weight;
};

}  // namespace vesta::nn
