#include <vesta/core/ops/amp.h>

#include <vesta/core/ops/pointwise.h>

namespace vesta {
namespace {

void check_cell(const Tensor& t, DType dtype, const char* op, const char* argument) {
  VESTA_CHECK(t.defined(), type, op, ": expected a tensor, got None (", argument, ").");
  VESTA_CHECK(t.dtype() == dtype && t.numel() == 1, value, op, ": expected one ", dtype, " element, got shape ",
              t.sizes(), " of ", t.dtype(), " (", argument, ").");
}

void check_device(const Tensor& t, const Tensor& like, const char* op, const char* argument, const char* other) {
  VESTA_CHECK(t.device() == like.device(), device, op, ": expected all tensors on one device, got ", t.device(), " (",
              argument, ") and ", like.device(), " (", other, "). Move one with .to().");
}

}  // namespace

void check_amp_unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  constexpr const char* op = "_amp_unscale_";
  check_cell(found_inf, DType::float32, op, "found_inf");
  check_cell(inv_scale, DType::float32, op, "inv_scale");
  check_device(inv_scale, found_inf, op, "inv_scale", "found_inf");
  for (size_t i = 0; i < grads.size(); ++i) {
    const Tensor& g = grads[i];
    VESTA_CHECK(g.defined(), type, op, ": expected a tensor, got None (grads[", i, "]).");
    VESTA_CHECK(is_float(g.dtype()), type, op, ": expected a floating-point dtype, got ", g.dtype(), " (grads[", i,
                "]).");
    check_device(g, found_inf, op, "grads", "found_inf");
    check_writable(g, op);
  }
  check_writable(found_inf, op);
}

void check_amp_update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                            int64_t growth_interval) {
  constexpr const char* op = "_amp_update_scale_";
  check_cell(scale, DType::float32, op, "scale");
  check_cell(growth_tracker, DType::int32, op, "growth_tracker");
  check_cell(found_inf, DType::float32, op, "found_inf");
  check_device(growth_tracker, scale, op, "growth_tracker", "scale");
  check_device(found_inf, scale, op, "found_inf", "scale");
  VESTA_CHECK(growth_interval >= 1, value, op, ": expected at least 1, got ", growth_interval, " (growth_interval).");
  check_writable(scale, op);
  check_writable(growth_tracker, op);
}

}  // namespace vesta
