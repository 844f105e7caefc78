// tril and triu of contiguous matrices; others are masked, as the op's own body does it.
#include <algorithm>

#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/shape.h>
#include <vesta/cuda/kernels/triangle.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

template <bool lower>
Tensor triangle_kernel(const Tensor& input, int64_t diagonal) {
  if (input.dim() < 2 || input.numel() == 0 || !input.is_contiguous()) {
    return (lower ? ops::tril : ops::triu).body()(input, diagonal);
  }
  OperandDevice device(input);
  const Tensor r = result_tensor(input.sizes(), input.dtype(), input.device());
  TriangleLaunch l;
  l.name = lower ? "tril" : "triu", l.stream = device.stream(), l.lower = lower;
  l.from = input.impl()->data(), l.to = r.impl()->data(), l.item = input.element_size();
  l.rows = input.size(-2), l.columns = input.size(-1), l.all = input.numel();
  l.diagonal = std::clamp(diagonal, -l.rows, l.columns);  // a sum with it does not overflow
  triangle(l);
  return r;
}

}  // namespace

void register_triangle() {
  ops::tril.set_kernel(DeviceType::cuda, &triangle_kernel<true>);
  ops::triu.set_kernel(DeviceType::cuda, &triangle_kernel<false>);
}

}  // namespace vesta::cuda
