// Activations and attention as layers.
#pragma once
#include <cmath>
#include <tuple>

#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/linear.h>

namespace torch::nn {

TORCH_PLAIN_LAYER(LogSigmoid, detail::NoOptions, functional::logsigmoid(input));
TORCH_PLAIN_LAYER(SiLU, detail::NoOptions, functional::silu(input));
TORCH_PLAIN_LAYER(Mish, detail::NoOptions, functional::mish(input));
TORCH_PLAIN_LAYER(Sigmoid, detail::NoOptions, vesta::sigmoid(input));
TORCH_PLAIN_LAYER(Tanh, detail::NoOptions, vesta::tanh(input));
TORCH_PLAIN_LAYER(Softsign, detail::NoOptions, functional::softsign(input));
TORCH_PLAIN_LAYER(Tanhshrink, detail::NoOptions, functional::tanhshrink(input));

TORCH_PLAIN_LAYER(ReLU, ReLUOptions, functional::relu(input, options), detail::if_in_place(options.inplace(), ""));
TORCH_PLAIN_LAYER(ReLU6, ReLU6Options, functional::relu6(input, options), detail::if_in_place(options.inplace(), ""));
TORCH_PLAIN_LAYER(SELU, SELUOptions, functional::selu(input, options), detail::if_in_place(options.inplace(), ""));
TORCH_PLAIN_LAYER(ELU, ELUOptions, functional::elu(input, options), "alpha=", options.alpha(),
                  detail::if_in_place(options.inplace()));
TORCH_PLAIN_LAYER(CELU, CELUOptions, functional::celu(input, options), "alpha=", options.alpha(),
                  detail::if_in_place(options.inplace()));
TORCH_PLAIN_LAYER(LeakyReLU, LeakyReLUOptions, functional::leaky_relu(input, options),
                  "negative_slope=", options.negative_slope(), detail::if_in_place(options.inplace()));
TORCH_PLAIN_LAYER(Hardtanh, HardtanhOptions, functional::hardtanh(input, options), "min_val=", options.min_val(),
                  ", max_val=", options.max_val(), detail::if_in_place(options.inplace()));
TORCH_PLAIN_LAYER(Threshold, ThresholdOptions, functional::threshold(input, options), "threshold=", options.threshold(),
                  ", value=", options.value(), detail::if_in_place(options.inplace()));
TORCH_PLAIN_LAYER(Hardshrink, HardshrinkOptions, functional::hardshrink(input, options), options.lambda());
TORCH_PLAIN_LAYER(Softshrink, SoftshrinkOptions, functional::softshrink(input, options), options.lambda());
TORCH_PLAIN_LAYER(Softplus, SoftplusOptions, functional::softplus(input, options), "beta=", options.beta(),
                  ", threshold=", options.threshold());
TORCH_PLAIN_LAYER(GELU, GELUOptions, functional::gelu(input, options));
TORCH_PLAIN_LAYER(GLU, GLUOptions, functional::glu(input, options), "dim=", options.dim());
TORCH_PLAIN_LAYER(Softmax, SoftmaxOptions, functional::softmax(input, options.dim()), "dim=", options.dim());
TORCH_PLAIN_LAYER(Softmin, SoftminOptions, functional::softmin(input, options.dim()), "dim=", options.dim());
TORCH_PLAIN_LAYER(LogSoftmax, LogSoftmaxOptions, functional::log_softmax(input, options.dim()), "dim=", options.dim());

namespace detail {
inline const RReLUOptions& checked(const RReLUOptions& o) {
  TORCH_CHECK(o.lower() < o.upper(), "RReLU: expected lower < upper, got ", o.lower(), " and ", o.upper());
  return o;
}
}  // namespace detail
TORCH_PLAIN_LAYER(RReLU, RReLUOptions,
                  functional::rrelu(input, functional::RReLUFuncOptions()
                                               .lower(detail::checked(options).lower())
                                               .upper(options.upper())
                                               .training(this->is_training())
                                               .inplace(options.inplace())),
                  "lower=", options.lower(), ", upper=", options.upper(), detail::if_in_place(options.inplace()));

/// The softmax over the channels of images [N, C, H, W] or [C, H, W].
class Softmax2dImpl : public detail::PlainLayer<Softmax2dImpl> {
 public:
  using PlainLayer::PlainLayer;
  Tensor forward(const Tensor& input) {
    TORCH_CHECK(input.dim() == 4 || input.dim() == 3, "Softmax2d requires a 3D or 4D tensor as input");
    return functional::softmax(input, input.dim() - 3);
  }
  TORCH_LAYER_TEXT("Softmax2d")
};
TORCH_MODULE(Softmax2d);

/// The activation that multiplies what is negative by a parameter `weight`.
class PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  TORCH_LAYER_OPTIONS(PReLUImpl, PReLUOptions);
  void reset() override {
    weight = register_parameter("weight", vesta::full({options.num_parameters()}, options.init()));
  }
  Tensor forward(const Tensor& input) { return functional::prelu(input, weight); }
  TORCH_LAYER_TEXT("PReLU", "num_parameters=", options.num_parameters())

  Tensor weight;
};
TORCH_MODULE(PReLU);

/// Attention of a query [L, N, E] to keys [S, N, kdim] and values [S, N, vdim] in `num_heads` parts of E.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  TORCH_LAYER_OPTIONS(MultiheadAttentionImpl, MultiheadAttentionOptions);
  void reset() override {
    const int64_t e = options.embed_dim();
    TORCH_CHECK(options.num_heads() > 0 && e % options.num_heads() == 0, "embed_dim must be divisible by num_heads");
    head_dim = e / options.num_heads();
    _qkv_same_embed_dim = options.kdim() == e && options.vdim() == e;
    const auto add = [&](const char* name, bool there, std::initializer_list<int64_t> sizes) {
      return register_parameter(name, there ? vesta::empty(sizes) : Tensor(), there);
    };
    in_proj_weight = add("in_proj_weight", _qkv_same_embed_dim, {3 * e, e});
    q_proj_weight = add("q_proj_weight", !_qkv_same_embed_dim, {e, e});
    k_proj_weight = add("k_proj_weight", !_qkv_same_embed_dim, {e, options.kdim()});
    v_proj_weight = add("v_proj_weight", !_qkv_same_embed_dim, {e, options.vdim()});
    in_proj_bias = add("in_proj_bias", options.bias(), {3 * e});
    out_proj = register_module("out_proj", Linear(LinearOptions(e, e).bias(options.bias())));
    bias_k = add("bias_k", options.add_bias_kv(), {1, 1, e});
    bias_v = add("bias_v", options.add_bias_kv(), {1, 1, e});
    _reset_parameters();
  }
  void _reset_parameters() {
    for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
      if (w.defined()) init::xavier_uniform_(w);
    }
    if (in_proj_bias.defined()) init::zeros_(in_proj_bias), init::zeros_(out_proj->bias);
    for (const Tensor& b : {bias_k, bias_v}) {
      if (b.defined()) init::xavier_normal_(b);
    }
  }
  /// Returns the output [L, N, E] and, if `need_weights`, the weights [N, L, S] (or of each head).
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true) {
    return functional::multi_head_attention_forward(
        query, key, value,
        functional::MultiheadAttentionForwardFuncOptions(options.embed_dim(), options.num_heads(), in_proj_weight,
                                                         in_proj_bias, bias_k, bias_v, options.add_zero_attn(),
                                                         options.dropout(), out_proj->weight, out_proj->bias)
            .training(is_training())
            .key_padding_mask(key_padding_mask)
            .need_weights(need_weights)
            .attn_mask(attn_mask)
            .use_separate_proj_weight(!_qkv_same_embed_dim)
            .q_proj_weight(q_proj_weight)
            .k_proj_weight(k_proj_weight)
            .v_proj_weight(v_proj_weight)
            .average_attn_weights(average_attn_weights));
  }
  void pretty_print(std::ostream& stream) const override { stream << "torch::nn::MultiheadAttention"; }

  bool _qkv_same_embed_dim = true;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v;
  Linear out_proj = nullptr;
  Tensor q_proj_weight, k_proj_weight, v_proj_weight;
  int64_t head_dim = 0;
};
TORCH_MODULE(MultiheadAttention);

}  // namespace torch::nn
