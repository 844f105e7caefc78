#include <vesta/core/ops/amp.h>

#include <algorithm>
#include <cmath>

#include <vesta/core/ops/copy.h>
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

/// Checks that the tensors of a list lie on one device, and if `floats` that all are floating.
void check_list(TensorList tensors, bool floats, const char* op) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    VESTA_CHECK(t.defined(), type, op, ": expected a tensor, got None (tensors[", i, "]).");
    VESTA_CHECK(!floats || is_float(t.dtype()), type, op, ": expected a floating-point dtype, got ", t.dtype(),
                " (tensors[", i, "]).");
    check_device(t, tensors[0], op, "tensors", "tensors[0]");
  }
}

}  // namespace

NormKind check_list_norms(TensorList tensors, double ord) {
  constexpr const char* op = "_list_norms";
  VESTA_CHECK(!tensors.empty(), value, op, ": expected at least one tensor, got none.");
  check_list(tensors, true, op);
  VESTA_CHECK(ord == 1 || ord == 2 || (std::isinf(ord) && ord > 0), value, op, ": expected 1, 2 or inf, got ", ord,
              " (ord).");
  return ord == 1 ? NormKind::sum : ord == 2 ? NormKind::squares : NormKind::greatest;
}

Tensor empty_norms(TensorList tensors, bool total) {
  const bool wide = std::ranges::any_of(tensors, [](const Tensor& t) { return t.dtype() == DType::float64; });
  const int64_t n = int64_t(tensors.size());
  return empty_tensor(total ? IntSpan() : IntSpan(&n, 1), wide ? DType::float64 : DType::float32, tensors[0].device());
}

ListFactor check_list_mul(TensorList tensors, const MaybeTensor& by, double factor, bool clip) {
  constexpr const char* op = "_list_mul_";
  check_list(tensors, true, op);
  for (const Tensor& t : tensors) check_writable(t, op);
  ListFactor r;
  r.factor = factor, r.clip = clip;
  VESTA_CHECK(by.defined() || !clip, type, op, ": expected a tensor, got None (by), which is clipped.");
  if (!by.defined()) return r;
  VESTA_CHECK((by->dtype() == DType::float32 || by->dtype() == DType::float64) && by->numel() == 1, value, op,
              ": expected one float32 or float64 element, got shape ", by->sizes(), " of ", by->dtype(), " (by).");
  if (!tensors.empty()) check_device(*by, tensors[0], op, "by", "tensors[0]");
  if (by->dtype() == DType::float32) r.by = reinterpret_cast<const float*>(by->impl()->data());
  else r.wide = reinterpret_cast<const double*>(by->impl()->data());
  return r;
}

void check_list_zero(TensorList tensors) {
  constexpr const char* op = "_list_zero_";
  check_list(tensors, false, op);
  for (const Tensor& t : tensors) check_writable(t, op);
}

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

char* DenseMemory::of(const Tensor& t) {
  if (t.impl()->dense()) return t.impl()->data();
  copies_.emplace_back(&t, clone(t, "contiguous_format"));
  return copies_.back().second.impl()->data();
}

void DenseMemory::written(TensorList list) const {
  for (const auto& [t, copy] : copies_) copy_into(*t, copy, op_);
  for (const Tensor& t : list) {
    if (t.impl()->dense()) t.impl()->bump(op_);
  }
}

}  // namespace vesta
