// Ops of gradient scaling (Micikevicius et al. 2018, "Mixed Precision Training"): docs, and the checks that all devices
// share. The scale, the counter and the finding live on the device: nothing here waits for it.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

namespace doc {
inline constexpr char _amp_unscale_[] =
    "_amp_unscale_(grads, found_inf, inv_scale): multiplies each tensor of a list by inv_scale, in place, and sets "
    "found_inf to 1 where any element was infinite or NaN before. found_inf and inv_scale are float32, one element.";
inline constexpr char _amp_update_scale_[] =
    "_amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval): multiplies "
    "scale (float32) by backoff_factor if found_inf is not 0, else by growth_factor every growth_interval calls, which "
    "growth_tracker (int32) counts; in place. A scale that would become infinite stays.";
}  // namespace doc

/// Checks the operands of _amp_unscale_: floating dtypes, dense memory, one device.
VESTA_API void check_amp_unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale);
/// Checks the operands of _amp_update_scale_: one element each, dtypes, one device, an interval of at least 1.
VESTA_API void check_amp_update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                                      int64_t growth_interval);

}  // namespace vesta
