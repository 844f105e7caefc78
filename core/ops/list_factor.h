// The number that a list of tensors is multiplied by (`_list_mul_`), computed alike on all devices.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// What `_list_mul_` multiplies by: an element that lies on the tensors' device, at most one of the two, and a number.
struct ListFactor {
  const float* by = nullptr;
  const double* wide = nullptr;
  double factor = 1;
  bool clip = false;
};

/// Returns by how much gradients whose norm is `norm` are multiplied, so that it is `most` at most; NaN stays NaN.
template <class C>
VESTA_HD C clip_factor(C norm, C most) {
  const C r = most / (norm + C(1e-6));
  return r > C(1) ? C(1) : r;
}

/// Reads the element and returns the multiplier in C; the quotient of a clipped norm is of the norm's own type.
template <class C>
VESTA_HD C multiplier(const ListFactor& f) {
  const C factor = f.clip ? C(1) : C(f.factor);
  if (f.by) return factor * C(f.clip ? clip_factor<float>(*f.by, float(f.factor)) : *f.by);
  if (f.wide) return factor * C(f.clip ? clip_factor<double>(*f.wide, f.factor) : *f.wide);
  return factor;
}

/// The norms that run over lists: the sum of magnitudes, the root of the sum of squares, the greatest magnitude.
enum class NormKind { sum, squares, greatest };

}  // namespace vesta
