// The graphs of attention: y = softmax(q k^T scale) v, and its gradient. It knows no device and no tensor.
//
// Backward, with P = exp(scores - top): dv = P^T g, dP = g v^T, dS = P (dP - sum(g y)) scale, dq = dS k, dk = dS^T q.
// cuDNN recognizes these graphs by their form, down to the order of operations. In the form chosen here dq is a product
// of dS as a whole, which a plan keeps in its workspace in 16 bits; the form that adds to dq in float needs none, but
// adds in the order in which blocks come.
#include <vesta/cuda/lib/cudnn_attention.h>

namespace vesta::cuda {
namespace {
using namespace cudnn;
using Numbers = std::vector<int64_t>;

Numbers turned(Numbers n) {
  std::swap(n[2], n[3]);
  return n;
}

/// A graph of attention being made.
struct Maker {
  const AttentionDesc& d;
  Graph g;

  Numbers sizes_of(AttentionTensor t) const {
    const bool of_queries = t == attention_q || t == attention_out || t == attention_grad || t == attention_of_q;
    const bool of_values = t == attention_v || t == attention_out || t == attention_grad || t == attention_of_v;
    return {d.batch, of_queries ? d.heads : d.shared_heads, of_queries ? d.queries : d.keys,
            of_values ? d.value_size : d.key_size};
  }
  Numbers strides_of(AttentionTensor t) const {
    const auto& s = d.strides[t];
    return {s[0], s[1], s[2], 1};
  }
  int operand(AttentionTensor t) { return g.tensor(t + 1, sizes_of(t), strides_of(t), d.dtype); }
  int operand_turned(AttentionTensor t) { return g.tensor(t + 1, turned(sizes_of(t)), turned(strides_of(t)), d.dtype); }
  Numbers scores() const { return {d.batch, d.heads, d.queries, d.keys}; }
  Numbers column() const { return {d.batch, d.heads, d.queries, 1}; }
  int top() { return g.tensor(attention_top_id, column(), {d.heads * d.queries, d.queries, 1, 1}, DType::float32); }

  /// Adds the numbers that come to scores.
  int biased(int x) {
    if (!d.bias) return x;
    const auto& n = d.bias->sizes;
    const int64_t row = d.bias->row, head = n[2] * row;
    const int b = g.tensor(attention_bias_id, {n[0], n[1], n[2], n[3]}, {n[1] * head, head, row, 1}, d.bias->dtype);
    return g.pointwise(pointwise_add, x, b, g.between(scores()));
  }
  /// Hides the keys after each query.
  int hidden(int x) {
    const int row = g.index(x, 2, g.between(scores(), DType::int32));
    const int at = g.index(x, 3, g.between(scores(), DType::int32));
    const int seen = g.pointwise(pointwise_at_least, row, at, g.between(scores(), DType::bool_));
    return g.select(seen, x, g.number(attention_hidden_id, 4), g.between(scores()));
  }
  /// Returns a matrix of scores, turned.
  int turned_scores(int x) {
    const Numbers s = scores();
    const Numbers strides{d.heads * d.queries * d.keys, d.queries * d.keys, 1, d.keys};
    return g.reshape(x, g.between(turned(s), strides, d.dtype));
  }
  /// Writes a product that is summed over the heads of queries which share a head.
  void shared_product(int a, int b, AttentionTensor to) {
    if (d.heads == d.shared_heads) {
      g.matmul(a, b, operand(to));
      return;
    }
    Numbers sizes = sizes_of(to);
    sizes[1] = d.heads;
    g.reduce(reduction_add, g.matmul(a, b, g.between(sizes, d.dtype)), operand(to));
  }

  void forward() {
    int x = g.matmul(operand(attention_q), operand_turned(attention_k), g.between(scores()));
    x = g.pointwise(pointwise_multiply, x, g.number(attention_scale_id, 4), g.between(scores()));
    x = biased(x);
    if (d.causal) x = hidden(x);
    const int most = g.reduce(reduction_max, x, g.between(column()));
    x = g.pointwise(pointwise_subtract, x, most, g.between(scores()));
    x = g.pointwise(pointwise_exp, x, g.between(scores()));
    const int sum = g.reduce(reduction_add, x, g.between(column()));
    g.pointwise(pointwise_add, most, g.pointwise(pointwise_log, sum, g.between(column())), top());
    x = g.pointwise(pointwise_divide, x, sum, g.between(scores(), d.dtype));
    g.matmul(x, operand(attention_v), operand(attention_out));
  }

  void backward() {
    const int q = operand(attention_q), k = operand_turned(attention_k), v = operand_turned(attention_v);
    const int grad = operand(attention_grad), scale = g.number(attention_scale_id, 4);
    int inner = g.pointwise(pointwise_multiply, grad, operand(attention_out), g.between(sizes_of(attention_out)));
    inner = g.reduce(reduction_add, inner, g.between(column()));
    inner = g.pointwise(pointwise_multiply, inner, g.number(attention_one_id, 4), g.between(column()));

    int x = g.matmul(q, k, g.between(scores()));
    x = g.pointwise(pointwise_multiply, x, scale, g.between(scores()));
    x = biased(x);
    x = g.pointwise(pointwise_subtract, x, top(), g.between(scores()));
    if (d.causal) x = hidden(x);
    const int weights = g.pointwise(pointwise_exp, x, g.between(scores()));
    shared_product(turned_scores(weights), grad, attention_of_v);

    x = g.matmul(grad, v, g.between(scores()));
    x = g.pointwise(pointwise_subtract, x, inner, g.between(scores()));
    x = g.pointwise(pointwise_multiply, x, weights, g.between(scores()));
    const int of_scores = g.pointwise(pointwise_multiply, x, scale, g.between(scores(), d.dtype));
    shared_product(turned_scores(of_scores), q, attention_of_k);
    const int keys = g.reshape(k, g.between(sizes_of(attention_k), strides_of(attention_k), d.dtype));
    g.matmul(of_scores, keys, operand(attention_of_q));
  }
};

}  // namespace

Plan plan_attention(const AttentionDesc& desc, bool gradient, const Target& target, const Choice& choice) {
  Maker m{desc, {}};
  gradient ? m.backward() : m.forward();
  return m.g.build(target, choice);
}

}  // namespace vesta::cuda
