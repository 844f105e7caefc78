#include "memory_format.h"

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/view.h>

namespace vesta::python {
namespace {

constexpr std::string_view kNames[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};

}  // namespace

bool lies_in(const Tensor& t, Format format) {
  switch (format) {
    case Format::channels_last: return t.dim() == 4 && permute(t, {0, 2, 3, 1}).is_contiguous();
    case Format::channels_last_3d: return t.dim() == 5 && permute(t, {0, 2, 3, 4, 1}).is_contiguous();
    default: return t.is_contiguous();
  }
}

Tensor laid_out(const Tensor& t, Format format, const char* op) {
  if (format == Format::preserve) return t;
  // Where dimensions of size 1 leave it open, the strides say which layout ops follow: they must be those asked for.
  const bool last = format == Format::channels_last || format == Format::channels_last_3d;
  if (lies_in(t, format) && (!last || t.numel() == 0 || suggests_channels_last(t))) return t;
  const std::string_view name = kNames[int(format)];
  strides_in(name, t.sizes(), op);  // says so of a wrong number of dimensions, in the name of the op
  return clone(t, name);
}

}  // namespace vesta::python
