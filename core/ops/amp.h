// Ops of gradient scaling (Micikevicius et al. 2018, "Mixed Precision Training"): docs, and the checks that all devices
// share. The scale, the counter and found_inf live on the device: nothing here waits for it.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Checks the operands of _amp_unscale_: floating dtypes, dense memory, one device.
VESTA_API void check_amp_unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale);
/// Checks the operands of _amp_update_scale_: one element each, dtypes, one device, an interval of at least 1.
VESTA_API void check_amp_update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                                      int64_t growth_interval);

}  // namespace vesta
