#include <vesta/nn/layers/attention.h>

#include <cmath>
#include <limits>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>
#include <vesta/nn/init.h>

namespace vesta::nn {

// ---- attention with several heads ----

namespace {

/// Returns a mask as numbers to add: minus infinity where a boolean one is True.
Tensor as_numbers(const char* op, const char* name, const Tensor& mask, DType dtype) {
  if (!mask.defined()) return mask;
  VESTA_CHECK(mask.dtype() == DType::bool_ || is_float(mask.dtype()), value, op, ": only bool and floating types of ",
              name, " are supported, got ", mask.dtype(), ".");
  if (mask.dtype() != DType::bool_) return mask;
  return masked_fill(zeros(mask.sizes(), dtype, mask.device()), mask, -std::numeric_limits<double>::infinity());
}

/// Turns [length, batch, count / batch * size] into [count, length, size].
Tensor heads(const Tensor& x, int64_t count, int64_t size) {
  return transpose(view(contiguous(x), {x.size(0), count, size}), 0, 1);
}

/// Adds a key that nothing masks.
Tensor longer(const Tensor& mask) {
  if (!mask.defined()) return mask;
  Dims sizes(mask.sizes());
  sizes.back() = 1;
  return cat({mask, zeros(sizes, mask.dtype(), mask.device())}, -1);
}

}  // namespace

MultiheadAttention::MultiheadAttention(Options o) : LayerOf(o) {
  const int64_t e = o.embed_dim;
  VESTA_CHECK(e > 0 && o.num_heads > 0, value,
              "MultiheadAttention: embed_dim and num_heads must be greater than 0, got embed_dim=", e,
              " and num_heads=", o.num_heads, " instead");
  VESTA_CHECK(e % o.num_heads == 0, value, "MultiheadAttention: embed_dim must be divisible by num_heads, got ", e,
              " and ", o.num_heads, ".");
  VESTA_CHECK(o.dropout >= 0 && o.dropout <= 1, value,
              "MultiheadAttention: dropout probability has to be between 0 and 1, but got ", o.dropout, ".");
  const int64_t k = o.kdim.value_or(e), v = o.vdim.value_or(e);
  const bool same = k == e && v == e;
  const auto add = [&](const char* name, bool there, const Dims& shape) {
    return register_parameter(name, there ? empty(shape, o.dtype) : Tensor());
  };
  if (same) in_proj_weight = add("in_proj_weight", true, {3 * e, e});
  q_proj_weight = add("q_proj_weight", !same, {e, e});
  k_proj_weight = add("k_proj_weight", !same, {e, k});
  v_proj_weight = add("v_proj_weight", !same, {e, v});
  if (!same) in_proj_weight = add("in_proj_weight", false, {});
  in_proj_bias = add("in_proj_bias", o.bias, {3 * e});
  out_proj = register_module("out_proj", make<NonDynamicallyQuantizableLinear>(LinearOptions{e, e, o.bias, o.dtype}));
  bias_k = add("bias_k", o.add_bias_kv, {1, 1, e});
  bias_v = add("bias_v", o.add_bias_kv, {1, 1, e});
  reset_parameters();
}

void MultiheadAttention::reset_parameters() {
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (w.defined()) init::xavier_uniform_(w);
  }
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  for (const Tensor& b : {bias_k, bias_v}) {
    if (b.defined()) init::xavier_normal_(b);
  }
}

std::array<Tensor, 3> MultiheadAttention::project(const Tensor& query, const Tensor& key, const Tensor& value) const {
  const std::vector<Tensor> biases = in_proj_bias.defined() ? chunk(in_proj_bias, 3) : std::vector<Tensor>(3);
  if (!in_proj_weight.defined()) {
    VESTA_CHECK(key.size(0) == value.size(0) && key.size(1) == value.size(1), value,
                "MultiheadAttention: key's sequence and batch dims do not match value's, got ", key.sizes(), " and ",
                value.sizes(), ".");
    return {linear(query, q_proj_weight, biases[0]), linear(key, k_proj_weight, biases[1]),
            linear(value, v_proj_weight, biases[2])};
  }
  VESTA_CHECK(std::ranges::equal(key.sizes(), value.sizes()), value, "MultiheadAttention: key shape ", key.sizes(),
              " does not match value shape ", value.sizes(), ".");
  if (query.is_same(key) && key.is_same(value)) {  // as few products as they are different tensors
    const std::vector<Tensor> parts = chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<Tensor> weights = chunk(in_proj_weight, 3);
  const Tensor q = linear(query, weights[0], biases[0]);
  if (key.is_same(value)) {
    const int64_t e = options.embed_dim;
    const Tensor bias = in_proj_bias.defined() ? narrow(in_proj_bias, 0, e, 2 * e) : Tensor();
    const std::vector<Tensor> both = chunk(linear(key, narrow(in_proj_weight, 0, e, 2 * e), bias), 2, -1);
    return {q, both[0], both[1]};
  }
  return {q, linear(key, weights[1], biases[1]), linear(value, weights[2], biases[2])};
}

TensorPair MultiheadAttention::forward(const Tensor& query_, const Tensor& key_, const Tensor& value_,
                                       MaybeTensor padding_, bool need_weights, MaybeTensor mask_,
                                       bool average_attn_weights, bool is_causal) {
  constexpr const char* op = "MultiheadAttention";
  const int64_t dims = query_.dim(), e = options.embed_dim, nhead = options.num_heads, d = e / nhead;
  const bool batched = dims == 3;
  VESTA_CHECK(dims == 2 || batched, value, op, ": query should be unbatched 2D or batched 3D tensor but received ",
              dims, "-D query tensor");
  VESTA_CHECK(key_.dim() == dims && value_.dim() == dims, value, op, ": for ", dims,
              "-D query, expected key and value of as many dimensions but found ", key_.dim(), "-D and ", value_.dim(),
              "-D tensors");
  // The same tensor stays the same: self-attention is one product.
  const auto lengths_first = [&](const Tensor& x) {
    return !batched ? unsqueeze(x, 1) : options.batch_first ? transpose(x, 0, 1) : x;
  };
  const Tensor query = lengths_first(query_), key = key_.is_same(query_) ? query : lengths_first(key_),
               value = value_.is_same(key_) ? key : lengths_first(value_);
  Tensor padding = padding_, mask = mask_;
  VESTA_CHECK(!padding.defined() || padding.dim() == dims - 1, value, op, ": expected key_padding_mask of ", dims - 1,
              " dimensions, got ", padding.defined() ? padding.dim() : 0, ".");
  if (padding.defined() && !batched) padding = unsqueeze(padding, 0);
  padding = as_numbers(op, "key_padding_mask", padding, query.dtype());
  VESTA_CHECK(!is_causal || mask.defined(), runtime, op, ": Need attn_mask if specifying the is_causal hint.");
  if (is_causal && !padding.defined() && !need_weights) {
    mask = {};  // the function below knows the causal mask
  } else {
    mask = as_numbers(op, "attn_mask", mask, query.dtype());
    is_causal = is_causal && !padding.defined();
  }
  VESTA_CHECK(query.size(-1) == e, value, op, ": was expecting embedding dimension of ", e, ", but got ",
              query.size(-1), ".");
  const int64_t length = query.size(0), batch = query.size(1), count = batch * nhead;
  int64_t source = key.size(0);
  auto [q, k, v] = project(query, key, value);
  if (mask.defined()) {
    const Dims wanted = mask.dim() == 2 ? Dims{length, source} : Dims{count, length, source};
    VESTA_CHECK(std::ranges::equal(mask.sizes(), wanted), runtime, op, ": The shape of the ", mask.dim(),
                "D attn_mask is ", mask.sizes(), ", but should be ", IntSpan(wanted), ".");
    if (mask.dim() == 2) mask = unsqueeze(mask, 0);
  }
  if (bias_k.defined()) {
    k = cat({k, repeat(bias_k, {1, batch, 1})});
    v = cat({v, repeat(bias_v, {1, batch, 1})});
    mask = longer(mask), padding = longer(padding);
  }
  q = heads(q, count, d), k = heads(k, count, d), v = heads(v, count, d);
  if (options.add_zero_attn) {
    const Tensor none = zeros({count, 1, d}, k.dtype(), k.device());
    k = cat({k, none}, 1), v = cat({v, none}, 1);
    mask = longer(mask), padding = longer(padding);
  }
  source = k.size(1);
  if (padding.defined()) {
    VESTA_CHECK(padding.size(0) == batch && padding.size(1) == source, value, op,
                ": expecting key_padding_mask shape of [", batch, ", ", source, "], but got ", padding.sizes(), ".");
    const Tensor each = reshape(expand(view(padding, {batch, 1, 1, source}), {-1, nhead, -1, -1}), {count, 1, source});
    mask = mask.defined() ? add(mask, each) : each;
  }
  const double drop = is_training() ? options.dropout : 0;
  const auto projected = [&](const Tensor& y) { return linear(y, out_proj->weight, out_proj->bias); };
  const auto given_order = [&](const Tensor& y) {
    return !batched ? squeeze(y, 1) : options.batch_first ? transpose(y, 1, 0) : y;
  };
  if (!need_weights) {
    if (mask.defined()) mask = mask.size(0) == 1 ? unsqueeze(mask, 0) : view(mask, {batch, nhead, -1, source});
    const auto of_batch = [&](const Tensor& x) { return reshape(x, {batch, nhead, -1, d}); };
    const Tensor y = scaled_dot_product_attention(of_batch(q), of_batch(k), of_batch(v), mask, drop, is_causal);
    return {given_order(projected(reshape(permute(y, {2, 0, 1, 3}), {length, batch, e}))), Tensor()};
  }
  Tensor scores = matmul(mul(q, std::sqrt(1.0 / double(d))), transpose(k, -2, -1));
  if (mask.defined()) scores = add(scores, mask);
  Tensor attention = softmax(scores, -1);
  if (drop > 0) attention = dropout(attention, drop, true);
  const Tensor y = projected(reshape(transpose(matmul(attention, v), 0, 1), {length, batch, e}));
  attention = view(attention, {batch, nhead, length, source});
  if (average_attn_weights) attention = mean(attention, 1);
  return {given_order(y), batched ? attention : squeeze(attention, 0)};
}

// ---- transformers ----

namespace {

Tensor activated(const std::string& activation, const Tensor& x) { return activation == "relu" ? relu(x) : gelu(x); }

void check_activation(const std::string& op, const std::string& activation) {
  VESTA_CHECK(activation == "relu" || activation == "gelu", runtime, op, ": activation should be relu/gelu, not ",
              activation, ".");
}

MultiheadAttentionOptions attention_of(const TransformerLayerOptions& o) {
  return {.embed_dim = o.d_model,
          .num_heads = o.nhead,
          .dropout = o.dropout,
          .bias = o.bias,
          .batch_first = o.batch_first,
          .dtype = o.dtype};
}

std::shared_ptr<LayerNorm> norm_of(int64_t size, double eps, bool bias, DType dtype) {
  return make<LayerNorm>(LayerNormOptions{.normalized_shape = size, .eps = eps, .bias = bias, .dtype = dtype});
}

/// Returns whether a mask is the causal one of this size; what the caller says wins.
bool is_causal_mask(const Tensor& mask, std::optional<bool> said, int64_t size) {
  if (said || !mask.defined()) return said.value_or(false);
  if (!has_values(mask)) return false;  // it has no values to compare: it may be any
  if (mask.dim() != 2 || mask.size(0) != size || mask.size(1) != size) return false;
  const Tensor causal = mask.dtype() == DType::bool_ ? triu(ones({size, size}, DType::bool_), 1)
                                                     : Transformer::generate_square_subsequent_mask(size, mask.dtype());
  return all(eq(mask, causal.to(mask.device()))).item<bool>();
}

/// Returns the length of a sequence for a stack of layers.
int64_t length_of(const Tensor& x, const ModuleList& layers) {
  bool batch_first = false;
  if (layers.size() > 0) {
    const Module& first = layers[0];
    if (const auto* encoder = dynamic_cast<const TransformerEncoderLayer*>(&first)) {
      batch_first = encoder->options.batch_first;
    } else if (const auto* decoder = dynamic_cast<const TransformerDecoderLayer*>(&first)) {
      batch_first = decoder->options.batch_first;
    }
  }
  return x.dim() == 2 ? x.size(0) : x.size(batch_first ? 1 : 0);
}

std::shared_ptr<ModuleList> copies(const std::string& op, const std::shared_ptr<Module>& layer, int64_t count) {
  VESTA_CHECK(layer, value, op, ": expected a layer, got a null pointer.");
  VESTA_CHECK(count >= 0, value, op, ": expected num_layers >= 0, got ", count, ".");
  auto list = make<ModuleList>();
  for (int64_t i = 0; i < count; ++i) list->push_back(layer->clone());
  return list;
}

/// Runs a stack of layers, each with the same further inputs.
Tensor through(const ModuleList& layers, const std::shared_ptr<Module>& norm, const Tensor& x, Values inputs) {
  inputs.insert(inputs.begin(), Value(x));
  for (size_t i = 0; i < layers.size(); ++i) inputs[0] = layers[i].run(inputs);
  const Tensor y = inputs[0].tensor();
  return norm ? (*norm)(y) : y;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(Options o) : LayerOf(o) {
  check_activation(name(), o.activation);
  self_attn = register_module("self_attn", make<MultiheadAttention>(attention_of(o)));
  linear1 = register_module("linear1", make<Linear>(LinearOptions{o.d_model, o.dim_feedforward, o.bias, o.dtype}));
  dropout = register_module("dropout", make<Dropout>(o.dropout));
  linear2 = register_module("linear2", make<Linear>(LinearOptions{o.dim_feedforward, o.d_model, o.bias, o.dtype}));
  norm1 = register_module("norm1", norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype));
  norm2 = register_module("norm2", norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype));
  dropout1 = register_module("dropout1", make<Dropout>(o.dropout));
  dropout2 = register_module("dropout2", make<Dropout>(o.dropout));
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, MaybeTensor src_mask, MaybeTensor src_key_padding_mask,
                                        bool is_causal) {
  const Tensor padding =
      as_numbers("TransformerEncoderLayer", "src_key_padding_mask", src_key_padding_mask, src.dtype());
  const Tensor mask = as_numbers("TransformerEncoderLayer", "src_mask", src_mask, src.dtype());
  const auto attend = [&](const Tensor& x) {
    return (*dropout1)(std::get<0>((*self_attn)(x, x, x, padding, false, mask, true, is_causal)));
  };
  const auto feed_forward = [&](const Tensor& x) {
    return (*dropout2)((*linear2)((*dropout)(activated(options.activation, (*linear1)(x)))));
  };
  if (options.norm_first) {
    const Tensor x = add(src, attend((*norm1)(src)));
    return add(x, feed_forward((*norm2)(x)));
  }
  const Tensor x = (*norm1)(add(src, attend(src)));
  return (*norm2)(add(x, feed_forward(x)));
}

TransformerDecoderLayer::TransformerDecoderLayer(Options o) : LayerOf(o) {
  check_activation(name(), o.activation);
  self_attn = register_module("self_attn", make<MultiheadAttention>(attention_of(o)));
  multihead_attn = register_module("multihead_attn", make<MultiheadAttention>(attention_of(o)));
  linear1 = register_module("linear1", make<Linear>(LinearOptions{o.d_model, o.dim_feedforward, o.bias, o.dtype}));
  dropout = register_module("dropout", make<Dropout>(o.dropout));
  linear2 = register_module("linear2", make<Linear>(LinearOptions{o.dim_feedforward, o.d_model, o.bias, o.dtype}));
  norm1 = register_module("norm1", norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype));
  norm2 = register_module("norm2", norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype));
  norm3 = register_module("norm3", norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype));
  dropout1 = register_module("dropout1", make<Dropout>(o.dropout));
  dropout2 = register_module("dropout2", make<Dropout>(o.dropout));
  dropout3 = register_module("dropout3", make<Dropout>(o.dropout));
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory, MaybeTensor tgt_mask,
                                        MaybeTensor memory_mask, MaybeTensor tgt_key_padding_mask,
                                        MaybeTensor memory_key_padding_mask, bool tgt_is_causal,
                                        bool memory_is_causal) {
  const auto own = [&](const Tensor& x) {
    return (*dropout1)(std::get<0>((*self_attn)(x, x, x, tgt_key_padding_mask, false, tgt_mask, true, tgt_is_causal)));
  };
  const auto other = [&](const Tensor& x) {
    return (*dropout2)(std::get<0>(
        (*multihead_attn)(x, memory, memory, memory_key_padding_mask, false, memory_mask, true, memory_is_causal)));
  };
  const auto feed_forward = [&](const Tensor& x) {
    return (*dropout3)((*linear2)((*dropout)(activated(options.activation, (*linear1)(x)))));
  };
  if (options.norm_first) {
    Tensor x = add(tgt, own((*norm1)(tgt)));
    x = add(x, other((*norm2)(x)));
    return add(x, feed_forward((*norm3)(x)));
  }
  Tensor x = (*norm1)(add(tgt, own(tgt)));
  x = (*norm2)(add(x, other(x)));
  return (*norm3)(add(x, feed_forward(x)));
}

TransformerEncoder::TransformerEncoder(Options o) : LayerOf(o) {
  layers = register_module("layers", copies("TransformerEncoder", o.encoder_layer, o.num_layers));
  if ((norm = o.norm)) register_module("norm", norm);
}

Tensor TransformerEncoder::forward(const Tensor& src, MaybeTensor mask_, MaybeTensor padding_,
                                   std::optional<bool> is_causal) {
  const Tensor padding = as_numbers("TransformerEncoder", "src_key_padding_mask", padding_, src.dtype());
  const Tensor mask = as_numbers("TransformerEncoder", "mask", mask_, src.dtype());
  return through(*layers, norm, src, {mask, padding, is_causal_mask(mask, is_causal, length_of(src, *layers))});
}

std::shared_ptr<Module> TransformerEncoder::clone() const {
  const init::Skip skip;
  auto copy = make<TransformerEncoder>(
      Options{options.encoder_layer, options.num_layers, norm ? norm->clone() : std::shared_ptr<Module>()});
  copy->copy_tree(*this);
  return copy;
}

TransformerDecoder::TransformerDecoder(Options o) : LayerOf(o) {
  layers = register_module("layers", copies("TransformerDecoder", o.decoder_layer, o.num_layers));
  if ((norm = o.norm)) register_module("norm", norm);
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, MaybeTensor tgt_mask,
                                   MaybeTensor memory_mask, MaybeTensor tgt_key_padding_mask,
                                   MaybeTensor memory_key_padding_mask, std::optional<bool> tgt_is_causal,
                                   bool memory_is_causal) {
  const bool causal = is_causal_mask(tgt_mask, tgt_is_causal, length_of(tgt, *layers));
  return through(
      *layers, norm, tgt,
      {memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal, memory_is_causal});
}

std::shared_ptr<Module> TransformerDecoder::clone() const {
  const init::Skip skip;
  auto copy = make<TransformerDecoder>(
      Options{options.decoder_layer, options.num_layers, norm ? norm->clone() : std::shared_ptr<Module>()});
  copy->copy_tree(*this);
  return copy;
}

Transformer::Transformer(Options o) : LayerOf(o) {
  const TransformerLayerOptions each{o.d_model,        o.nhead,       o.dim_feedforward, o.dropout, o.activation,
                                     o.layer_norm_eps, o.batch_first, o.norm_first,      o.bias,    o.dtype};
  // One after the other: each draws its parameters in the order of Python's.
  const auto encoder_layer = make<TransformerEncoderLayer>(each);
  encoder = register_module("encoder", make<TransformerEncoder>(encoder_layer, o.num_encoder_layers,
                                                                norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype)));
  const auto decoder_layer = make<TransformerDecoderLayer>(each);
  decoder = register_module("decoder", make<TransformerDecoder>(decoder_layer, o.num_decoder_layers,
                                                                norm_of(o.d_model, o.layer_norm_eps, o.bias, o.dtype)));
  for (const Tensor& p : parameters()) {
    if (p.dim() > 1) init::xavier_uniform_(p);
  }
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, MaybeTensor src_mask, MaybeTensor tgt_mask,
                            MaybeTensor memory_mask, MaybeTensor src_key_padding_mask, MaybeTensor tgt_key_padding_mask,
                            MaybeTensor memory_key_padding_mask, std::optional<bool> src_is_causal,
                            std::optional<bool> tgt_is_causal, bool memory_is_causal) {
  const int64_t batch = options.batch_first ? 0 : 1;
  VESTA_CHECK(src.dim() != 3 || (tgt.dim() == 3 && src.size(batch) == tgt.size(batch)), runtime,
              "Transformer: the batch number of src and tgt must be equal, got ", src.sizes(), " and ", tgt.sizes(),
              ".");
  VESTA_CHECK(src.size(-1) == options.d_model && tgt.size(-1) == options.d_model, runtime,
              "Transformer: the feature number of src and tgt must be equal to d_model ", options.d_model, ", got ",
              src.size(-1), " and ", tgt.size(-1), ".");
  const Tensor memory = (*encoder)(src, src_mask, src_key_padding_mask, src_is_causal);
  return (*decoder)(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                    memory_is_causal);
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, DType dtype) {
  VESTA_CHECK(size >= 0, value, "generate_square_subsequent_mask: expected size >= 0, got ", size, ".");
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), dtype), 1);
}

}  // namespace vesta::nn
