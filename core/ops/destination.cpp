#include <vesta/core/ops/destination.h>

#include <algorithm>

#include <vesta/core/base/warning.h>
#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/promotion.h>
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
      out.impl()->storage()->begin_write();  // the write begins; the caller counts its end
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

void check_out_not_recorded(bool recorded, const char* op) {
  VESTA_CHECK(!recorded, runtime, op,
              "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
}

void check_out(const Tensor& out, const Tensor& result, bool exact, const char* op) {
  VESTA_CHECK(!exact || result.dtype() == out.dtype(), runtime, op, ": Expected out tensor to have dtype ",
              result.dtype(), ", but got ", out.dtype(), " instead.");
  VESTA_CHECK(can_cast(result.dtype(), out.dtype()), type, op, ": result type ", result.dtype(),
              " can't be cast to the desired output type ", out.dtype(), ".");
  VESTA_CHECK(result.device() == out.device(), device, op, ": expected out on ", result.device(), ", got ",
              out.device(), ".");
  check_out_shape(out, result.sizes(), op);
}

void check_written(const Tensor& out, const Tensor& result, bool exact, const char* op) {
  check_out_not_recorded(GradMode::enabled() && (result.requires_grad() || out.requires_grad()), op);
  check_out(out, result, exact, op);
  check_writable(out, op);
}

void write_out(const Tensor& out, const Tensor& result, const char* op, bool exact) {
  check_written(out, result, exact, op);
  const bool shared = out.impl()->storage() == result.impl()->storage();
  NoGrad off;
  const Tensor from = shared ? clone(result) : result;
  resize_out(out, from.sizes(), op);
  copy_into(out, from, "copy_");  // the last writer's name, which the tensor keeps
}

}  // namespace vesta
