// Special functions under libtorch's two names: torch::special::entr(x) and torch::special_entr(x).
#pragma once
#include <torch/functions.h>

namespace torch {

namespace special {
using vesta::log_softmax;
using vesta::logit;
using vesta::logsumexp;
using vesta::polygamma;
using vesta::round;
using vesta::softmax;
using vesta::xlog1py;
using vesta::xlogy;
using vesta::zeta;
inline Tensor multigammaln(const Tensor& t, int64_t p) { return vesta::mvlgamma(t, p); }
inline Tensor gammainc(const Tensor& a, const Tensor& x) { return vesta::igamma(a, x); }
inline Tensor gammaincc(const Tensor& a, const Tensor& x) { return vesta::igammac(a, x); }
}  // namespace special

// Vesta's function of another name.
#define VESTA_SPECIAL(name, function)                                              \
  namespace special { inline Tensor name(const Tensor& t) { return vesta::function(t); } } \
  inline Tensor special_##name(const Tensor& t) { return vesta::function(t); }
// clang-format off
VESTA_SPECIAL(expit, sigmoid) VESTA_SPECIAL(gammaln, lgamma) VESTA_SPECIAL(psi, digamma)
#undef VESTA_SPECIAL
#define VESTA_SPECIAL(name)              \
  namespace special { using vesta::name; } \
  inline Tensor special_##name(const Tensor& t) { return vesta::name(t); }
VESTA_SPECIAL(airy_ai) VESTA_SPECIAL(bessel_j0) VESTA_SPECIAL(bessel_j1) VESTA_SPECIAL(bessel_y0)
VESTA_SPECIAL(bessel_y1) VESTA_SPECIAL(digamma) VESTA_SPECIAL(entr) VESTA_SPECIAL(erf) VESTA_SPECIAL(erfc)
VESTA_SPECIAL(erfcx) VESTA_SPECIAL(erfinv) VESTA_SPECIAL(exp2) VESTA_SPECIAL(expm1) VESTA_SPECIAL(i0)
VESTA_SPECIAL(i0e) VESTA_SPECIAL(i1) VESTA_SPECIAL(i1e) VESTA_SPECIAL(log1p) VESTA_SPECIAL(log_ndtr)
VESTA_SPECIAL(modified_bessel_i0) VESTA_SPECIAL(modified_bessel_i1) VESTA_SPECIAL(modified_bessel_k0)
VESTA_SPECIAL(modified_bessel_k1) VESTA_SPECIAL(ndtr) VESTA_SPECIAL(ndtri)
VESTA_SPECIAL(scaled_modified_bessel_k0) VESTA_SPECIAL(scaled_modified_bessel_k1) VESTA_SPECIAL(sinc)
VESTA_SPECIAL(spherical_bessel_j0)
#undef VESTA_SPECIAL
// A degree n, or another second argument, which may be a number; so may the first.
#define VESTA_SPECIAL(name)                                                                                      \
  namespace special { using vesta::name; }                                                                        \
  inline Tensor special_##name(const Tensor& x, const vesta::Operand& n) { return vesta::name(x, n); }            \
  inline Tensor special_##name(Scalar x, const Tensor& n) { return vesta::name(x, n); }
VESTA_SPECIAL(chebyshev_polynomial_t) VESTA_SPECIAL(chebyshev_polynomial_u) VESTA_SPECIAL(chebyshev_polynomial_v)
VESTA_SPECIAL(chebyshev_polynomial_w) VESTA_SPECIAL(hermite_polynomial_h) VESTA_SPECIAL(hermite_polynomial_he)
VESTA_SPECIAL(laguerre_polynomial_l) VESTA_SPECIAL(legendre_polynomial_p)
VESTA_SPECIAL(shifted_chebyshev_polynomial_t) VESTA_SPECIAL(shifted_chebyshev_polynomial_u)
VESTA_SPECIAL(shifted_chebyshev_polynomial_v) VESTA_SPECIAL(shifted_chebyshev_polynomial_w) VESTA_SPECIAL(xlog1py)
VESTA_SPECIAL(xlogy) VESTA_SPECIAL(zeta)
#undef VESTA_SPECIAL
// clang-format on

    inline Tensor special_gammainc(const Tensor& a, const Tensor& x) {
  return vesta::igamma(a, x);
}
inline Tensor special_gammaincc(const Tensor& a, const Tensor& x) { return vesta::igammac(a, x); }
inline Tensor special_log_softmax(const Tensor& t, int64_t dim, optional<Dtype> dtype = {}) {
  return vesta::log_softmax(t, dim, dtype);
}
inline Tensor special_softmax(const Tensor& t, int64_t dim, optional<Dtype> dtype = {}) {
  return vesta::softmax(t, dim, dtype);
}
inline Tensor special_logit(const Tensor& t, optional<double> eps = {}) { return vesta::logit(t, eps); }
inline Tensor special_logsumexp(const Tensor& t, IntArrayRef dim, bool keepdim = false) {
  return vesta::logsumexp(t, dim, keepdim);
}
inline Tensor special_multigammaln(const Tensor& t, int64_t p) { return vesta::mvlgamma(t, p); }
inline Tensor special_polygamma(int64_t n, const Tensor& t) { return vesta::polygamma(n, t); }
inline Tensor special_round(const Tensor& t, int64_t decimals = 0) { return vesta::round(t, decimals); }

}  // namespace torch
