#include <vesta/core/ops/destination.h>

#include <algorithm>

#include <vesta/core/base/warning.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace { constinit thread_local Destination* current = nullptr; }  // namespace

Destination::Destination(std::span<const Tensor> outs) : outs_(outs), outer_(current) { current = this; }
Destination::~Destination() { current = outer_; }

Tensor result_tensor(IntSpan sizes, DType dtype, Device device) {
  if (Destination* d = current) {
    for (size_t i = 0; i < d->outs_.size(); ++i) {
      const Tensor& out = d->outs_[i];
      if ((d->taken_ >> i & 1) || out.dtype() != dtype || out.device() != device || !out.is_contiguous() ||
          !std::ranges::equal(out.sizes(), sizes)) {
        continue;
      }
      d->taken_ |= uint64_t(1) << i;
      return out;
    }
  }
  return empty_tensor(sizes, dtype, device);
}

void check_out_shape(const Tensor& out, IntSpan sizes, const char* op) {
  if (std::ranges::equal(out.sizes(), sizes)) return;
  const bool resizable = out.impl()->storage()->resizable();
  VESTA_CHECK(resizable && (out.numel() == 0 || follows_torch()), value, op, ": expected out of shape ", sizes,
              ", got ", out.sizes(), ". An out tensor is resized only when it is empty.");
}

void resize_out(const Tensor& out, IntSpan sizes, const char* op) {
  check_out_shape(out, sizes, op);
  if (std::ranges::equal(out.sizes(), sizes)) return;
  if (out.numel() != 0) {
    warn(text("An output with one or more elements was resized since it had shape ", out.sizes(),
              ", which does not match the required output shape ", sizes, "."));
  }
  resize_tensor(out, sizes);
}

}  // namespace vesta
