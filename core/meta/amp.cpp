// Gradient scaling and clipping: checks, shapes, and the count of versions. Nothing is found to be infinite.
#include <vesta/core/ops/amp.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/optim.h>

namespace vesta::meta {
namespace {

void unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  check_amp_unscale(grads, found_inf, inv_scale);
  for (const Tensor& g : grads) g.impl()->bump("_amp_unscale_");
}

void update(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double, double,
            int64_t growth_interval) {
  check_amp_update_scale(scale, growth_tracker, found_inf, growth_interval);
  scale.impl()->bump("_amp_update_scale_");
  growth_tracker.impl()->bump("_amp_update_scale_");
}

Tensor norms(TensorList tensors, double ord, bool total) {
  check_list_norms(tensors, ord);
  return empty_norms(tensors, total);
}

void mul(TensorList tensors, MaybeTensor by, double factor, bool clip) {
  check_list_mul(tensors, by, factor, clip);
  for (const Tensor& t : tensors) t.impl()->bump("_list_mul_");
}

void zero(TensorList tensors) {
  check_list_zero(tensors);
  for (const Tensor& t : tensors) t.impl()->bump("_list_zero_");
}

}  // namespace

void register_amp() {
  ops::_list_norms.set_kernel(DeviceType::meta, norms);
  ops::_list_mul_.set_kernel(DeviceType::meta, mul);
  ops::_list_zero_.set_kernel(DeviceType::meta, zero);
  ops::_amp_unscale_.set_kernel(DeviceType::meta, unscale);
  ops::_amp_update_scale_.set_kernel(DeviceType::meta, update);
}

}  // namespace vesta::meta
