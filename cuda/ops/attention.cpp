// Fused attention and its gradient, over strided heads.
#include <vesta/core/ops/attention.h>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/kernels/attention.h>
#include <vesta/cuda/lib/cudnn_attention.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Returns a tensor [batch, heads, rows, columns] whose columns lie side by side: itself, or a copy.
Tensor with_rows(const Tensor& t) { return t.sizes()[3] == 1 || t.strides()[3] == 1 ? t : contiguous_values(t); }

AttentionOperand operand_of(const Tensor& t) {
  const char* data = static_cast<const char*>(t.impl()->data());
  AttentionOperand o{t.impl()->data(), t.strides()[0], t.strides()[1], t.strides()[2]};
  o.packed = rows_fit_packs(t.sizes()[3], t.dtype(), {data});
  o.aligned = reinterpret_cast<uintptr_t>(data) % 16 == 0;
  for (size_t d = 0; d < 3; ++d) {
    o.packed = o.packed && rows_fit_packs(t.strides()[d], t.dtype(), {data});
    o.aligned = o.aligned && t.strides()[d] * itemsize(t.dtype()) % 16 == 0;
  }
  return o;
}

/// The operands in the form that kernels take; the tensors live as long as this.
struct Operands {
  Tensor q, k, v, mask;
  AttentionLaunch l;
  Operands(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask_, const AttentionCall& call)
      : q(with_rows(query)), k(with_rows(key)), v(with_rows(value)), mask(mask_) {
    l.stream = stream_of(q), l.dtype = q.dtype();
    l.batch = q.sizes()[0], l.heads = q.sizes()[1], l.group = l.heads / k.sizes()[1];
    l.queries = q.sizes()[2], l.keys = k.sizes()[2], l.key_size = q.sizes()[3], l.value_size = v.sizes()[3];
    l.q = operand_of(q), l.k = operand_of(k), l.v = operand_of(v);
    l.causal = call.is_causal, l.scale = call.scale;
    l.kept = 1 - call.dropout_p, l.seed = uint64_t(call.seed), l.offset = uint64_t(call.offset);
    if (!mask.defined()) return;
    const auto strides = mask.strides();
    auto kind = AttentionMask::single;
    if (mask.dtype() == DType::bool_) kind = AttentionMask::boolean;
    else if (mask.dtype() == q.dtype()) kind = AttentionMask::same;
    l.mask = {kind, mask.impl()->data(), strides[0], strides[1], strides[2], strides[3]};
    l.mask.aligned = strides[3] == 1 && operand_of(mask).aligned;
  }
};

/// A mask in the form that cuDNN takes, made when it is asked for: Note [Masks as numbers] in
/// ../lib/cudnn_attention.cpp.
class MaskNumbers {
 public:
  MaskNumbers(const AttentionLaunch& l, const Tensor& like) : like_(like) {
    const AttentionMask& m = l.mask;
    if (m.kind == AttentionMask::none) return;
    AttentionBias& to = bias.emplace();
    to.dtype = m.kind == AttentionMask::single ? DType::float32 : l.dtype;
    to.sizes = {m.batch ? l.batch : 1, m.head ? l.heads : 1, l.queries, l.keys};
    to.row = (l.keys + 7) / 8 * 8;
    made_.stream = l.stream, made_.dtype = l.dtype, made_.mask = m, made_.causal = l.causal;
    made_.batch = to.sizes[0], made_.heads = to.sizes[1], made_.queries = l.queries, made_.keys = l.keys;
    made_.row = to.row;
  }
  /// Queues the conversion; `finds_blind`: and what finds the queries that see nothing.
  void* make(bool finds_blind) {
    const auto& n = bias->sizes;
    numbers_ = empty_tensor({{n[0], n[1], n[2], bias->row}}, bias->dtype, like_.device());
    made_.bias = numbers_.impl()->data();
    if (finds_blind) {
      blind_ = empty_tensor({{n[0], n[1], n[2]}}, DType::bool_, like_.device());
      made_.blind = reinterpret_cast<bool*>(blind_.impl()->data());
    }
    attention_bias(made_);
    return made_.bias;
  }
  /// Queues what makes zeros of the results of those queries.
  void clear_blind(const AttentionLaunch& l) const {
    if (!blind_.defined()) return;
    const int64_t queries = made_.queries;
    attention_blind(l, {made_.blind, made_.batch > 1 ? made_.heads * queries : 0, made_.heads > 1 ? queries : 0});
  }
  std::optional<AttentionBias> bias;

 private:
  const Tensor& like_;
  AttentionBiasLaunch made_;
  Tensor numbers_, blind_;
};

/// Describes a call to cuDNN; operands that a pass does not have are null.
AttentionWork work_of(const AttentionLaunch& l, const Tensor& top, bool dropout, MaskNumbers& mask, bool gradient) {
  AttentionWork w;
  w.desc.dtype = l.dtype, w.desc.batch = l.batch, w.desc.heads = l.heads, w.desc.shared_heads = l.heads / l.group;
  w.desc.queries = l.queries, w.desc.keys = l.keys, w.desc.key_size = l.key_size, w.desc.value_size = l.value_size;
  w.desc.causal = l.causal, w.scale = l.scale, w.top = l.top, w.device = top.device();
  w.dropout = dropout, w.in_ranges = !gradient && attention_part_numbers(l) > 0;
  w.desc.bias = mask.bias;
  w.make_bias = [&mask, gradient] { return mask.make(!gradient); };
  const AttentionOperand* operands[] = {&l.q, &l.k, &l.v, &l.out, &l.grad, &l.of_q, &l.of_k, &l.of_v};
  static_assert(std::size(operands) == attention_tensors);
  for (size_t t = 0; t < attention_tensors; ++t) {
    const AttentionOperand& o = *operands[t];
    if (o.data) w.data[t] = o.data, w.desc.strides[t] = {o.batch, o.head, o.row};
  }
  return w;
}

TensorPair attention_kernel(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask,
                            double dropout_p, int64_t seed, int64_t offset, bool is_causal, double scale) {
  check_one_device("scaled_dot_product_attention", {&query, &key, &value, &*mask});
  const AttentionCall call{dropout_p, seed, offset, is_causal, scale};
  check_fused_attention(query, key, value, mask);
  const OperandDevice device(query);
  Operands o(query, key, value, mask, call);
  const Tensor y = empty_heads(query, o.l.heads, o.l.queries, o.l.value_size);
  const Tensor top = empty_tensor({{o.l.batch, o.l.heads, o.l.queries}}, compute_type(query.dtype()), query.device());
  o.l.out = operand_of(y), o.l.top = top.impl()->data();
  MaskNumbers numbers(o.l, query);
  if (attention_by_cudnn(work_of(o.l, top, dropout_p > 0, numbers, false), false)) {
    numbers.clear_blind(o.l);
    return {y, top};
  }
  Tensor parts;
  if (const int64_t n = attention_part_numbers(o.l); n > 0) {
    parts = empty_tensor(Dims{n}, DType::float32, query.device());
    o.l.parts = reinterpret_cast<float*>(parts.impl()->data());
  }
  attention(o.l);
  return {y, top};
}

TensorTriple attention_backward_kernel(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                       MaybeTensor mask, const Tensor& output, const Tensor& top, double dropout_p,
                                       int64_t seed, int64_t offset, bool is_causal, double scale) {
  check_one_device("scaled_dot_product_attention", {&grad, &query, &key, &value, &*mask, &output, &top});
  const AttentionCall call{dropout_p, seed, offset, is_causal, scale};
  check_fused_attention(query, key, value, mask);
  const OperandDevice device(query);
  Operands o(query, key, value, mask, call);
  const Tensor g = with_rows(grad), y = with_rows(output);
  const Tensor of_q = empty_heads(query, o.l.heads, o.l.queries, o.l.key_size);
  const Tensor of_k = empty_heads(key, key.sizes()[1], o.l.keys, o.l.key_size);
  const Tensor of_v = empty_heads(value, key.sizes()[1], o.l.keys, o.l.value_size);
  o.l.grad = operand_of(g), o.l.out = operand_of(y);
  o.l.top = top.impl()->data();
  o.l.of_q = operand_of(of_q), o.l.of_k = operand_of(of_k), o.l.of_v = operand_of(of_v);
  MaskNumbers numbers(o.l, query);
  if (attention_by_cudnn(work_of(o.l, top, dropout_p > 0, numbers, true), true)) return {of_q, of_k, of_v};
  const Tensor inner = empty_tensor(top.sizes(), top.dtype(), top.device());
  o.l.inner = inner.impl()->data();
  attention_backward(o.l);
  return {of_q, of_k, of_v};
}

}  // namespace

void register_attention() {
  ops::_fused_attention.set_kernel(DeviceType::cuda, attention_kernel);
  ops::_fused_attention_backward.set_kernel(DeviceType::cuda, attention_backward_kernel);
}

}  // namespace vesta::cuda
