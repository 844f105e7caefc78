// Docs of the topic sequence: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char lstm[] =
    "lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first): a long short-term "
    "memory (Hochreiter and Schmidhuber 1997) over input [T, N, I] (or [N, T, I] if batch_first), from states hx = "
    "(h [L D, N, P], c [L D, N, H]); params are w_ih [4 H, I], w_hh [4 H, P], then b_ih, b_hh [4 H] if has_biases "
    "and w_hr [P, H] if P is not H, for each of L layers and D directions. Gives (output [T, N, D P], h, c). Or "
    "lstm(data, batch_sizes, hx, params, ...) over a packed sequence.";
inline constexpr char gru[] =
    "gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first): gated recurrent "
    "units (Cho et al. 2014) over input [T, N, I] (or [N, T, I] if batch_first), from hx [L D, N, H]; params are "
    "w_ih [3 H, I], w_hh [3 H, H], then b_ih, b_hh [3 H] if has_biases, for each of L layers and D directions. "
    "Gives (output [T, N, D H], h). Or gru(data, batch_sizes, hx, params, ...) over a packed sequence.";
inline constexpr char rnn_tanh[] =
    "rnn_tanh(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first): a recurrent "
    "network h = tanh(w_ih x + b_ih + w_hh h + b_hh) over input [T, N, I] (or [N, T, I] if batch_first), from hx [L "
    "D, N, H]. Gives (output [T, N, D H], h). Or rnn_tanh(data, batch_sizes, hx, params, ...) over a packed "
    "sequence.";
inline constexpr char rnn_relu[] =
    "rnn_relu(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first): a recurrent "
    "network h = relu(w_ih x + b_ih + w_hh h + b_hh) over input [T, N, I] (or [N, T, I] if batch_first), from hx [L "
    "D, N, H]. Gives (output [T, N, D H], h). Or rnn_relu(data, batch_sizes, hx, params, ...) over a packed "
    "sequence.";
inline constexpr char _lstm_cell[] =
    "_lstm_cell(gates, cx): the step of an LSTM from its gates before their functions, [N, 4 H]: those of input, "
    "forgetting, cell and output, and the cell's state [N, H]; gives (h, c, the gates after their functions).";
inline constexpr char _lstm_cell_backward[] =
    "_lstm_cell_backward(gates, cx, activations, grad_h, grad_c): gradients of gates and cx.";
inline constexpr char lstm_cell[] =
    "lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None): one step of an LSTM: input [N, I], hx = (h, c), each "
    "[N, H]; gives (h, c).";
inline constexpr char gru_cell[] =
    "gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None): one step of a GRU: input [N, I], hx [N, H]; gives h.";
inline constexpr char rnn_tanh_cell[] =
    "rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None): tanh(w_ih x + b_ih + w_hh h + b_hh): input [N, I], "
    "hx [N, H]; gives h.";
inline constexpr char rnn_relu_cell[] =
    "rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None): relu(w_ih x + b_ih + w_hh h + b_hh): input [N, I], "
    "hx [N, H]; gives h.";
inline constexpr char scaled_dot_product_attention[] =
    "scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, "
    "enable_gqa=False): softmax(query key^T scale + mask) value (Vaswani et al. 2017). query [*, L, E], key [*, S, "
    "E], value [*, S, V]; gives [*, L, V]. attn_mask [*, L, S]: True where a query may look, or numbers to add. "
    "is_causal: query i sees keys 0 to i. scale: 1 / sqrt(E) if None. enable_gqa: heads of key and value (dimension "
    "-3) serve several of query. A query that may see nothing gets zeros.";
inline constexpr char bilinear[] =
    "bilinear(input1, input2, weight, bias=None): x1^T W_o x2 + b_o for each output o. input1 [*, I1], input2 [*, "
    "I2], weight [O, I1, I2], bias [O]; gives [*, O].";

}  // namespace vesta::doc
