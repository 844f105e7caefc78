// flip: copies in the reverse order of some dimensions.
#include <algorithm>
#include <array>

#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/shape.h>

VESTA_DECLARE_ON_ISA(void reverse(char* to, const char* from, int64_t item, int64_t n, bool non_temporal))

namespace vesta::cpu {
namespace {

/// A dimension of more than one element: its size, and the bytes from element to element in the order of the result.
struct FlippedAxis {
  int64_t size, stride;
};

/// The axes of the input in the order of its memory, and the rows that are copied as a whole.
struct Flip {
  std::array<FlippedAxis, kMaxDims> axes;
  int ndim = 0;
  int64_t first = 0;  // bytes from the input's begin to the element that comes first
  int64_t row = 1;    // elements
  bool reversed = false;  // the row itself

  Flip(const Tensor& x, uint64_t mask) {
    std::array<int, kMaxDims> order;
    for (int d = 0; d < x.dim(); ++d) {
      if (x.sizes()[size_t(d)] > 1) order[size_t(ndim++)] = d;
    }
    std::sort(order.begin(), order.begin() + ndim,
              [&](int a, int b) { return x.strides()[size_t(a)] > x.strides()[size_t(b)]; });
    for (int k = 0; k < ndim; ++k) {
      const int d = order[size_t(k)];
      const int64_t n = x.sizes()[size_t(d)], stride = x.strides()[size_t(d)] * x.element_size();
      const bool back = mask >> d & 1;
      axes[size_t(k)] = {n, back ? -stride : stride};
      if (back) first += (n - 1) * stride;
    }
    while (ndim > 0 && axes[size_t(ndim - 1)].stride > 0) row *= axes[size_t(--ndim)].size;
    if (ndim > 0 && row == 1) {
      row = axes[size_t(--ndim)].size, reversed = true;
      first -= (row - 1) * x.element_size();  // to where its memory begins
    }
  }
};

Tensor flip(const Tensor& input, IntList dims) {
  const uint64_t mask = dim_mask(dims, input.dim(), "flip", false);
  Tensor r = flip_result(input), x = input;
  if (r.numel() == 0) return r;
  if (!input.impl()->dense()) {
    x = empty_tensor(input.sizes(), input.dtype(), input.device());
    copy_values(x, input);
  }
  const Flip f(x, mask);
  const int64_t item = x.element_size(), rows = x.numel() / f.row;
  const Convert copy = convert(x.dtype(), x.dtype());
  const char* const from = x.impl()->data() + f.first;
  char* const to = r.impl()->data();
  const bool non_temporal = rows_bypass_caches(to, rows, f.row * item);
  parallel_for(rows, std::max<int64_t>(1, kElementGrain / f.row), [&](int64_t begin, int64_t end) {
    std::array<int64_t, kMaxDims> place{};
    int64_t at = 0;
    for (int64_t k = f.ndim, rest = begin; k-- > 0;) {
      const FlippedAxis& axis = f.axes[size_t(k)];
      place[size_t(k)] = rest % axis.size, rest /= axis.size;
      at += place[size_t(k)] * axis.stride;
    }
    for (int64_t i = begin; i < end; ++i) {
      char* const out = to + i * f.row * item;
      if (f.reversed) VESTA_ON_AVX2_AT_MOST(reverse, out, from + at, item, f.row, non_temporal);
      else if (non_temporal) write_non_temporal(out, from + at, f.row * item);
      else copy(from + at, item, out, item, f.row);
      for (int64_t k = f.ndim; k-- > 0;) {
        const FlippedAxis& axis = f.axes[size_t(k)];
        at += axis.stride;
        if (++place[size_t(k)] < axis.size) break;
        place[size_t(k)] = 0, at -= axis.size * axis.stride;
      }
    }
    if (non_temporal) finish_non_temporal();
  });
  return r;
}

}  // namespace

void register_flip() { ops::flip.set_kernel(DeviceType::cpu, &flip); }

}  // namespace vesta::cpu
