// The op list, sequences: recurrent networks and attention. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SEQUENCE(OP)                                                                                         \
  OP(FUNCTION, TensorTriple, lstm,                                                                                     \
     (const Tensor& input, TensorList hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,      \
      bool train, bool bidirectional, bool batch_first),                                                               \
     (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), composite,               \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION_AS, TensorTriple, lstm, data,                                                                            \
     (const Tensor& data, const Tensor& batch_sizes, TensorList hx, TensorList params, bool has_biases,                \
      int64_t num_layers, double dropout, bool train, bool bidirectional),                                             \
     (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), composite, any_device,    \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, gru,                                                                                        \
     (const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,   \
      bool train, bool bidirectional, bool batch_first),                                                               \
     (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), composite,               \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION_AS, TensorPair, gru, data,                                                                               \
     (const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases,             \
      int64_t num_layers, double dropout, bool train, bool bidirectional),                                             \
     (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), composite, any_device,    \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, rnn_tanh,                                                                                   \
     (const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,   \
      bool train, bool bidirectional, bool batch_first),                                                               \
     (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), composite,               \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION_AS, TensorPair, rnn_tanh, data,                                                                          \
     (const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases,             \
      int64_t num_layers, double dropout, bool train, bool bidirectional),                                             \
     (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), composite, any_device,    \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, rnn_relu,                                                                                   \
     (const Tensor& input, const Tensor& hx, TensorList params, bool has_biases, int64_t num_layers, double dropout,   \
      bool train, bool bidirectional, bool batch_first),                                                               \
     (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first), composite,               \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION_AS, TensorPair, rnn_relu, data,                                                                          \
     (const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params, bool has_biases,             \
      int64_t num_layers, double dropout, bool train, bool bidirectional),                                             \
     (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional), composite, any_device,    \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorTriple, _lstm_cell, (const Tensor& gates, const Tensor& cx), (gates, cx), composite, hidden,      \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, TensorPair, _lstm_cell_backward,                                                                        \
     (const Tensor& gates, const Tensor& cx, const Tensor& activations, MaybeTensor grad_h, MaybeTensor grad_c),       \
     (gates, cx, activations, grad_h, grad_c), composite, hidden, accepts(kFloats))                                    \
  OP(FUNCTION, TensorPair, lstm_cell,                                                                                  \
     (const Tensor& input, TensorList hx, const Tensor& w_ih, const Tensor& w_hh, MaybeTensor b_ih = {},               \
      MaybeTensor b_hh = {}), (input, hx, w_ih, w_hh, b_ih, b_hh), composite, accepts(kFloats))                        \
  OP(FUNCTION, Tensor, gru_cell,                                                                                       \
     (const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, MaybeTensor b_ih = {},            \
      MaybeTensor b_hh = {}), (input, hx, w_ih, w_hh, b_ih, b_hh), composite, accepts(kFloats))                        \
  OP(FUNCTION, Tensor, rnn_tanh_cell,                                                                                  \
     (const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, MaybeTensor b_ih = {},            \
      MaybeTensor b_hh = {}), (input, hx, w_ih, w_hh, b_ih, b_hh), composite, accepts(kFloats))                        \
  OP(FUNCTION, Tensor, rnn_relu_cell,                                                                                  \
     (const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh, MaybeTensor b_ih = {},            \
      MaybeTensor b_hh = {}), (input, hx, w_ih, w_hh, b_ih, b_hh), composite, accepts(kFloats))                        \
  OP(FUNCTION, Tensor, scaled_dot_product_attention,                                                                   \
     (const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor attn_mask = {}, double dropout_p = 0,   \
      bool is_causal = false, Kw<MaybeDouble> scale = {}, bool enable_gqa = false),                                    \
     (query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa), composite, functional,                   \
     casts(lower, lower), accepts(kFloats))                                                                            \
  OP(FUNCTION, Tensor, bilinear,                                                                                       \
     (const Tensor& input1, const Tensor& input2, const Tensor& weight, MaybeTensor bias = {}),                        \
     (input1, input2, weight, bias), composite, accepts(kNumbers))
