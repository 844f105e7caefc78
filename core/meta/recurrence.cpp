// A layer of a recurrent network in one direction: shapes.
#include <vesta/core/ops/recurrence.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

using recurrence::Kind;

RecurrenceResults layer(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                        IntList sizes, int64_t kind, bool) {
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  const int64_t rows = x.size(0), width = h.size(1);
  const bool gated = Kind(kind) == Kind::lstm || Kind(kind) == Kind::gru;
  return {result({rows, width}, x.dtype()), like(h), c.defined() ? like(*c) : Tensor(),
          gated ? result({rows, 4 * width}, x.dtype()) : Tensor(),
          c.defined() ? result({rows, width}, x.dtype()) : Tensor()};
}

RecurrenceGradients layer_backward(MaybeTensor, MaybeTensor, MaybeTensor, const Tensor& x, const Tensor& h,
                                   MaybeTensor c, const Tensor& weight, MaybeTensor bias, const Tensor&, MaybeTensor,
                                   MaybeTensor, IntList sizes, int64_t kind, bool) {
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  return {like(x), like(h), c.defined() ? like(*c) : Tensor(), like(weight), bias.defined() ? like(*bias) : Tensor()};
}

}  // namespace

void register_recurrence() {
  ops::_recurrence.set_kernel(DeviceType::meta, layer);
  ops::_recurrence_backward.set_kernel(DeviceType::meta, layer_backward);
}

}  // namespace vesta::meta
