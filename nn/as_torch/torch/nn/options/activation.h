// Options of activations and of attention.
#pragma once
#include <optional>
#include <string>

#include <torch/types.h>

namespace torch::nn {

/// Defines options whose first value may stand for them: `ReLU(true)`.
#define TORCH_OPTIONS_OF_ONE(Name, T, name, value) \
  struct Name {                                    \
    Name(T name = value) : name##_(name) {}        \
    TORCH_ARG(T, name);                            \
  }
TORCH_OPTIONS_OF_ONE(SELUOptions, bool, inplace, false);
TORCH_OPTIONS_OF_ONE(ReLUOptions, bool, inplace, false);
TORCH_OPTIONS_OF_ONE(ReLU6Options, bool, inplace, false);
TORCH_OPTIONS_OF_ONE(GLUOptions, int64_t, dim, -1);
TORCH_OPTIONS_OF_ONE(HardshrinkOptions, double, lambda, 0.5);
TORCH_OPTIONS_OF_ONE(SoftshrinkOptions, double, lambda, 0.5);
#undef TORCH_OPTIONS_OF_ONE

struct ELUOptions {
  TORCH_ARG(double, alpha) = 1;
  TORCH_ARG(bool, inplace) = false;
};
struct CELUOptions {
  TORCH_ARG(double, alpha) = 1;
  TORCH_ARG(bool, inplace) = false;
};
struct GELUOptions {
  TORCH_ARG(std::string, approximate) = "none";
};
struct HardtanhOptions {
  TORCH_ARG(double, min_val) = -1;
  TORCH_ARG(double, max_val) = 1;
  TORCH_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  TORCH_ARG(double, negative_slope) = 0.01;
  TORCH_ARG(bool, inplace) = false;
};
struct PReLUOptions {
  TORCH_ARG(int64_t, num_parameters) = 1;
  TORCH_ARG(double, init) = 0.25;
};
struct RReLUOptions {
  TORCH_ARG(double, lower) = 1.0 / 8;
  TORCH_ARG(double, upper) = 1.0 / 3;
  TORCH_ARG(bool, inplace) = false;
};
struct SoftplusOptions {
  TORCH_ARG(double, beta) = 1;
  TORCH_ARG(double, threshold) = 20;
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  TORCH_ARG(double, threshold);
  TORCH_ARG(double, value);
  TORCH_ARG(bool, inplace) = false;
};

/// Defines the options of a softmax, as a layer and as a function.
#define TORCH_SOFTMAX_OPTIONS(Name)                                \
  struct Name##Options {                                           \
    Name##Options(int64_t dim) : dim_(dim) {}                      \
    TORCH_ARG(int64_t, dim);                                       \
  };                                                               \
  namespace functional {                                           \
  struct Name##FuncOptions {                                       \
    Name##FuncOptions(int64_t dim) : dim_(dim) {}                  \
    TORCH_ARG(int64_t, dim);                                       \
    TORCH_ARG(std::optional<torch::Dtype>, dtype) = std::nullopt;  \
  };                                                               \
  }
TORCH_SOFTMAX_OPTIONS(Softmax)
TORCH_SOFTMAX_OPTIONS(Softmin)
TORCH_SOFTMAX_OPTIONS(LogSoftmax)
#undef TORCH_SOFTMAX_OPTIONS

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  TORCH_ARG(int64_t, embed_dim);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(double, dropout) = 0;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(bool, add_bias_kv) = false;
  TORCH_ARG(bool, add_zero_attn) = false;
  TORCH_ARG(int64_t, kdim);
  TORCH_ARG(int64_t, vdim);
};

namespace functional {

using ELUFuncOptions = ELUOptions;
using SELUFuncOptions = SELUOptions;
using GLUFuncOptions = GLUOptions;
using GELUFuncOptions = GELUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using HardtanhFuncOptions = HardtanhOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using CELUFuncOptions = CELUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using ThresholdFuncOptions = ThresholdOptions;

struct RReLUFuncOptions {
  TORCH_ARG(double, lower) = 1.0 / 8;
  TORCH_ARG(double, upper) = 1.0 / 3;
  TORCH_ARG(bool, training) = false;
  TORCH_ARG(bool, inplace) = false;
};
struct GumbelSoftmaxFuncOptions {
  TORCH_ARG(double, tau) = 1;
  TORCH_ARG(bool, hard) = false;
  TORCH_ARG(int, dim) = -1;
};
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight,
                                       Tensor in_proj_bias, Tensor bias_k, Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  TORCH_ARG(int64_t, embed_dim_to_check);
  TORCH_ARG(int64_t, num_heads);
  TORCH_ARG(Tensor, in_proj_weight);
  TORCH_ARG(Tensor, in_proj_bias);
  TORCH_ARG(Tensor, bias_k);
  TORCH_ARG(Tensor, bias_v);
  TORCH_ARG(bool, add_zero_attn);
  TORCH_ARG(double, dropout_p);
  TORCH_ARG(Tensor, out_proj_weight);
  TORCH_ARG(Tensor, out_proj_bias);
  TORCH_ARG(bool, training) = true;
  TORCH_ARG(Tensor, key_padding_mask) = {};
  TORCH_ARG(bool, need_weights) = true;
  TORCH_ARG(Tensor, attn_mask) = {};
  TORCH_ARG(bool, use_separate_proj_weight) = false;
  TORCH_ARG(Tensor, q_proj_weight) = {};
  TORCH_ARG(Tensor, k_proj_weight) = {};
  TORCH_ARG(Tensor, v_proj_weight) = {};
  TORCH_ARG(Tensor, static_k) = {};
  TORCH_ARG(Tensor, static_v) = {};
  TORCH_ARG(bool, average_attn_weights) = true;
};

}  // namespace functional
}  // namespace torch::nn
