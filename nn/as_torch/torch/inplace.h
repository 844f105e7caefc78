// Functions in namespace torch that change their first argument: torch::relu_(x) is x.relu_().
#pragma once
#include <torch/functions.h>

namespace torch {

// clang-format off
#define VESTA_CHANGES(name)                                               \
  template <class... A>                                                   \
  const Tensor& name(const Tensor& self, const A&... arguments) {         \
    self.name(arguments...);                                              \
    return self;                                                          \
  }
VESTA_CHANGES(abs_) VESTA_CHANGES(acos_) VESTA_CHANGES(acosh_) VESTA_CHANGES(asin_) VESTA_CHANGES(asinh_)
VESTA_CHANGES(atan_) VESTA_CHANGES(atanh_) VESTA_CHANGES(arccos_) VESTA_CHANGES(arccosh_) VESTA_CHANGES(arcsin_)
VESTA_CHANGES(arcsinh_) VESTA_CHANGES(arctan_) VESTA_CHANGES(arctanh_) VESTA_CHANGES(ceil_) VESTA_CHANGES(clamp_)
VESTA_CHANGES(clamp_max_) VESTA_CHANGES(clamp_min_) VESTA_CHANGES(clip_) VESTA_CHANGES(cos_) VESTA_CHANGES(cosh_)
VESTA_CHANGES(deg2rad_) VESTA_CHANGES(detach_) VESTA_CHANGES(erf_) VESTA_CHANGES(erfc_) VESTA_CHANGES(exp_)
VESTA_CHANGES(exp2_) VESTA_CHANGES(expm1_) VESTA_CHANGES(fix_) VESTA_CHANGES(floor_) VESTA_CHANGES(frac_)
VESTA_CHANGES(gcd_) VESTA_CHANGES(i0_) VESTA_CHANGES(lcm_) VESTA_CHANGES(ldexp_) VESTA_CHANGES(log_)
VESTA_CHANGES(log10_) VESTA_CHANGES(log1p_) VESTA_CHANGES(log2_) VESTA_CHANGES(logit_) VESTA_CHANGES(nan_to_num_)
VESTA_CHANGES(neg_) VESTA_CHANGES(negative_) VESTA_CHANGES(rad2deg_) VESTA_CHANGES(reciprocal_) VESTA_CHANGES(relu_)
VESTA_CHANGES(round_) VESTA_CHANGES(rsqrt_) VESTA_CHANGES(sigmoid_) VESTA_CHANGES(sin_) VESTA_CHANGES(sinc_)
VESTA_CHANGES(sinh_) VESTA_CHANGES(sqrt_) VESTA_CHANGES(square_) VESTA_CHANGES(tan_) VESTA_CHANGES(tanh_)
VESTA_CHANGES(trunc_) VESTA_CHANGES(xlogy_) VESTA_CHANGES(resize_as_)
#undef VESTA_CHANGES
// clang-format on

/// Writes what an activation gives into its argument. A copy keeps what the backward needs.
#define VESTA_ACTIVATES(name)                                       \
  template <class... A>                                             \
  const Tensor& name##_(const Tensor& self, const A&... arguments) { \
    self.copy_(vesta::name(self.clone(), arguments...));            \
    return self;                                                    \
  }
// clang-format off
VESTA_ACTIVATES(celu) VESTA_ACTIVATES(elu) VESTA_ACTIVATES(gelu) VESTA_ACTIVATES(hardsigmoid)
VESTA_ACTIVATES(hardswish) VESTA_ACTIVATES(hardtanh) VESTA_ACTIVATES(leaky_relu) VESTA_ACTIVATES(mish)
VESTA_ACTIVATES(selu) VESTA_ACTIVATES(silu) VESTA_ACTIVATES(threshold) VESTA_ACTIVATES(dropout)
// clang-format on
#undef VESTA_ACTIVATES
                inline const Tensor& relu6_(const Tensor& self) {
  return hardtanh_(self, 0, 6);
}

}  // namespace torch
