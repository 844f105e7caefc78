// constant_pad_nd: writes borders and middle in one pass over the result.
#include <vesta/core/ops/pad.h>

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/shape.h>

namespace vesta::cpu {
namespace {

/// A dimension of the result: its size, where the part begins in it, and the size and the stride (bytes) of the part.
struct PaddedAxis {
  int64_t size, before, kept, stride;
};

/// The result as lines of dense memory, each [border | elements of the part | border].
struct PaddedLines {
  std::array<PaddedAxis, kMaxDims> axes;  // over the lines, the last one innermost
  int ndim = 0;
  int64_t before = 0, kept = 1, line = 1;  // elements

  explicit PaddedLines(const Padding& p) {
    std::array<int, kMaxDims> order;
    for (int d = 0; d < p.result.dim(); ++d) order[size_t(d)] = d;
    const IntSpan strides = p.result.strides();
    std::stable_sort(order.begin(), order.begin() + p.result.dim(),
                     [&](int a, int b) { return strides[size_t(a)] > strides[size_t(b)]; });
    for (int k = 0; k < p.result.dim(); ++k) {
      const size_t d = size_t(order[size_t(k)]);
      if (p.result.sizes()[d] == 1 && p.part.sizes()[d] == 1) continue;
      axes[size_t(ndim++)] = {p.result.sizes()[d], p.before[d], p.part.sizes()[d],
                              p.part.strides()[d] * p.part.element_size()};
    }
    // An inner dimension without borders belongs to the line, and the first one with borders, which ends it.
    while (ndim > 0 && kept == line) {
      const PaddedAxis& a = axes[size_t(ndim - 1)];
      if (a.kept > 1 && a.stride != line * p.part.element_size()) break;
      --ndim;
      before = a.before * line, kept = a.kept * line, line *= a.size;
    }
  }
};

/// Writes n elements of a type of the given size, all alike.
void fill(char* to, const char* value, int64_t item, int64_t n) {
  auto as = [&](auto type) {
    using T = decltype(type);
    T v;
    std::memcpy(&v, value, sizeof v);
    std::fill_n(reinterpret_cast<T*>(to), n, v);
  };
  switch (item) {
    case 1: return as(uint8_t());
    case 2: return as(uint16_t());
    case 4: return as(uint32_t());
    case 8: return as(uint64_t());
    default: return as(std::complex<double>());
  }
}

/// Writes lines begin to end of the result.
void write_lines(const PaddedLines& lines, const Padding& p, const char* value, int64_t begin, int64_t end) {
  const int64_t item = p.result.element_size();
  const char* const part = static_cast<const char*>(p.part.impl()->data());
  char* to = static_cast<char*>(p.result.impl()->data()) + begin * lines.line * item;
  const int64_t behind = lines.line - lines.before - lines.kept;
  for (int64_t i = begin; i < end; ++i, to += lines.line * item) {
    int64_t from = 0, rest = i;
    bool border = lines.kept == 0;
    for (int k = lines.ndim; k-- > 0;) {
      const PaddedAxis& a = lines.axes[size_t(k)];
      const int64_t at = rest % a.size - a.before;
      rest /= a.size;
      border = border || at < 0 || at >= a.kept;
      from += at * a.stride;
    }
    if (border) {
      fill(to, value, item, lines.line);
      continue;
    }
    fill(to, value, item, lines.before);
    std::memcpy(to + lines.before * item, part + from, size_t(lines.kept * item));
    fill(to + (lines.before + lines.kept) * item, value, item, behind);
  }
}

Tensor constant_pad(const Tensor& input, IntList pad, Scalar value) {
  const Padding p = lay_out_padding(input, pad);
  const Tensor one = empty_tensor(Dims{1}, input.dtype(), input.device());
  fill_values(one, value, "constant_pad_nd");
  if (p.result.numel() == 0) return p.result;
  const PaddedLines lines(p);
  if (lines.ndim > 0 && lines.line == 1) {  // the part lies in another order
    fill_values(p.result, value, "constant_pad_nd");
    copy_values(p.middle(), p.part);
    return p.result;
  }
  const char* const element = static_cast<const char*>(one.impl()->data());
  parallel_for(p.result.numel() / lines.line, std::max<int64_t>(1, kElementGrain / lines.line),
               [&](int64_t begin, int64_t end) { write_lines(lines, p, element, begin, end); });
  return p.result;
}

}  // namespace

void register_pad() { ops::constant_pad_nd.set_kernel(DeviceType::cpu, &constant_pad); }

}  // namespace vesta::cpu
