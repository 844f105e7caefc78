// Fused attention: shapes.
#include <vesta/core/ops/attention.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/factory.h>

namespace vesta::meta {
namespace {

TensorPair attention(const Tensor& query, const Tensor& key, const Tensor& value, MaybeTensor mask, double, int64_t,
                     int64_t, bool, double) {
  check_fused_attention(query, key, value, mask);
  const int64_t heads = query.size(1), rows = query.size(2);
  return {empty_heads(query, heads, rows, value.size(3)),
          empty_tensor({{query.size(0), heads, rows}}, compute_type(query.dtype()), query.device())};
}

TensorTriple attention_backward(const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value,
                                MaybeTensor mask, const Tensor&, const Tensor&, double, int64_t, int64_t, bool,
                                double) {
  check_fused_attention(query, key, value, mask);
  const auto of = [](const Tensor& t) { return empty_heads(t, t.size(1), t.size(2), t.size(3)); };
  return {of(query), of(key), of(value)};
}

}  // namespace

void register_attention() {
  ops::_fused_attention.set_kernel(DeviceType::meta, attention);
  ops::_fused_attention_backward.set_kernel(DeviceType::meta, attention_backward);
}

}  // namespace vesta::meta
