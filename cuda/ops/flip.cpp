// flip: one copy, whose operand is read backwards along some dimensions.
#include <algorithm>
#include <numeric>

#include <vesta/core/ops/index.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/pointwise.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// A dimension of a copy; strides in bytes.
struct CopyAxis {
  int64_t size, from, to;
};

Tensor flip(const Tensor& input, IntList dims) {
  const uint64_t mask = dim_mask(dims, input.dim(), "flip", false);
  const Tensor r = flip_result(input);
  if (r.numel() == 0) return r;
  const int64_t item = input.element_size();
  std::vector<CopyAxis> axes;
  const char* from = input.impl()->data();
  for (int64_t d = 0; d < input.dim(); ++d) {
    const int64_t n = input.size(d), step = input.stride(d) * item;
    if (n == 1) continue;
    const bool backwards = mask >> d & 1;
    if (backwards) from += (n - 1) * step;
    axes.push_back({n, backwards ? -step : step, r.stride(d) * item});
  }
  std::ranges::stable_sort(axes, {}, &CopyAxis::to);
  int64_t sizes[kMaxDims], from_strides[kMaxDims], to_strides[kMaxDims];
  int ndim = 0;
  for (const CopyAxis& a : axes) {
    const int last = ndim - 1;
    if (ndim > 0 && a.from == from_strides[last] * sizes[last] && a.to == to_strides[last] * sizes[last]) {
      sizes[last] *= a.size;  // runs on
      continue;
    }
    sizes[ndim] = a.size, from_strides[ndim] = a.from, to_strides[ndim] = a.to;
    ++ndim;
  }
  if (ndim == 0) sizes[0] = 1, from_strides[0] = to_strides[0] = item, ndim = 1;
  PointwisePlan p;
  p.op = "flip", p.compute = p.result = input.dtype(), p.device = input.device();
  p.ndim = ndim, p.sizes = sizes, p.numel = r.numel(), p.inputs = 1;
  p.out = {r.impl()->data(), input.dtype(), false, to_strides};
  p.in[0] = {const_cast<char*>(from), input.dtype(), false, from_strides};
  run_plan(p);
  return r;
}

}  // namespace

void register_flip() { ops::flip.set_kernel(DeviceType::cuda, flip); }

}  // namespace vesta::cuda
