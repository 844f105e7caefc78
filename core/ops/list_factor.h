// The number that a list of tensors is multiplied by (`_list_mul_`), computed alike on all devices.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// The multiplier of `_list_mul_`: a number and, on the tensors' device, at most one scalar (`by` or `wide`).
struct ListFactor {
  const float* by = nullptr;
  const double* wide = nullptr;
  double factor = 1;
  bool clip = false;
};

/// Returns the factor that scales gradients of norm `norm` to a norm of at most `most`; NaN stays NaN.
template <class C>
VESTA_HD C clip_factor(C norm, C most) {
  const C r = most / (norm + C(1e-6));
  return r > C(1) ? C(1) : r;
}

/// Reads the scalar and returns the multiplier as a C. With `clip`, the scalar is a norm and `factor` its maximum.
template <class C>
VESTA_HD C multiplier(const ListFactor& f) {
  const C factor = f.clip ? C(1) : C(f.factor);
  if (f.by) return factor * C(f.clip ? clip_factor<float>(*f.by, float(f.factor)) : *f.by);
  if (f.wide) return factor * C(f.clip ? clip_factor<double>(*f.wide, f.factor) : *f.wide);
  return factor;
}

/// The norms of lists of tensors: the sum of magnitudes, the root of the sum of squares, the greatest magnitude.
enum class NormKind { sum, squares, greatest };

}  // namespace vesta
