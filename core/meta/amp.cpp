// Gradient scaling: checks, and the count of versions. Nothing is found to be infinite.
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

}  // namespace

void register_amp() {
  ops::_amp_unscale_.set_kernel(DeviceType::meta, unscale);
  ops::_amp_update_scale_.set_kernel(DeviceType::meta, update);
}

}  // namespace vesta::meta
