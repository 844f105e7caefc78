#include <vesta/core/ops/special.h>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/special.h>
#include <vesta/core/ops/pointwise/special.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SPECIAL)

namespace {

using math::Polynomials;
using Function = math::SpecialFunction;

/// Raises unless x has a dtype that a special function computes in, or goes to one.
void check_dtype(const char* op, const Tensor& x) {
  const bool ok = !is_float(x.dtype()) || x.dtype() == DType::float32 || x.dtype() == DType::float64;
  VESTA_CHECK(ok && !is_complex(x.dtype()), type, op, ": expected a dtype of float32, float64 or integers, got ",
              x.dtype(), ".");
}
Tensor evaluated(const char* op, Function which, const Tensor& x) {
  check_dtype(op, x);
  return _special_function(x, int64_t(which));
}
Tensor evaluated(const char* op, Polynomials family, const Tensor& x, const Tensor& n) {
  check_dtype(op, x);
  check_dtype(op, n);
  broadcast_shapes(x.sizes(), n.sizes(), op);
  return _orthogonal_polynomial(x, n, int64_t(family), 0);
}
/// Returns 2 x - 1, of integers as floats.
Tensor shifted(const char* op, const Tensor& x) {
  check_dtype(op, x);
  return sub(mul(is_float(x.dtype()) ? x : x.to(default_dtype()), 2), 1);
}

}  // namespace

Tensor bessel_j0_composite(const Tensor& x) { return evaluated("bessel_j0", Function::bessel_j0, x); }
Tensor bessel_j1_composite(const Tensor& x) { return evaluated("bessel_j1", Function::bessel_j1, x); }
Tensor bessel_y0_composite(const Tensor& x) { return evaluated("bessel_y0", Function::bessel_y0, x); }
Tensor bessel_y1_composite(const Tensor& x) { return evaluated("bessel_y1", Function::bessel_y1, x); }
Tensor airy_ai_composite(const Tensor& x) { return evaluated("airy_ai", Function::airy_ai, x); }
Tensor erfcx_composite(const Tensor& x) { return evaluated("erfcx", Function::erfcx, x); }
Tensor modified_bessel_k0_composite(const Tensor& x) { return evaluated("modified_bessel_k0", Function::bessel_k0, x); }
Tensor modified_bessel_k1_composite(const Tensor& x) { return evaluated("modified_bessel_k1", Function::bessel_k1, x); }
Tensor scaled_modified_bessel_k0_composite(const Tensor& x) {
  return evaluated("scaled_modified_bessel_k0", Function::bessel_k0e, x);
}
Tensor scaled_modified_bessel_k1_composite(const Tensor& x) {
  return evaluated("scaled_modified_bessel_k1", Function::bessel_k1e, x);
}
Tensor spherical_bessel_j0_composite(const Tensor& x) {
  return evaluated("spherical_bessel_j0", Function::spherical_j0, x);
}
Tensor modified_bessel_i0_composite(const Tensor& x) {
  check_dtype("modified_bessel_i0", x);
  return i0(x);
}
Tensor modified_bessel_i1_composite(const Tensor& x) {
  check_dtype("modified_bessel_i1", x);
  return i1(x);
}

Tensor chebyshev_polynomial_t_composite(const Tensor& x, const Tensor& n) {
  return evaluated("chebyshev_polynomial_t", Polynomials::chebyshev_t, x, n);
}
Tensor shifted_chebyshev_polynomial_t_composite(const Tensor& x, const Tensor& n) {
  return evaluated("shifted_chebyshev_polynomial_t", Polynomials::chebyshev_t,
                   shifted("shifted_chebyshev_polynomial_t", x), n);
}
Tensor chebyshev_polynomial_u_composite(const Tensor& x, const Tensor& n) {
  return evaluated("chebyshev_polynomial_u", Polynomials::chebyshev_u, x, n);
}
Tensor shifted_chebyshev_polynomial_u_composite(const Tensor& x, const Tensor& n) {
  return evaluated("shifted_chebyshev_polynomial_u", Polynomials::chebyshev_u,
                   shifted("shifted_chebyshev_polynomial_u", x), n);
}
Tensor chebyshev_polynomial_v_composite(const Tensor& x, const Tensor& n) {
  return evaluated("chebyshev_polynomial_v", Polynomials::chebyshev_v, x, n);
}
Tensor shifted_chebyshev_polynomial_v_composite(const Tensor& x, const Tensor& n) {
  return evaluated("shifted_chebyshev_polynomial_v", Polynomials::chebyshev_v,
                   shifted("shifted_chebyshev_polynomial_v", x), n);
}
Tensor chebyshev_polynomial_w_composite(const Tensor& x, const Tensor& n) {
  return evaluated("chebyshev_polynomial_w", Polynomials::chebyshev_w, x, n);
}
Tensor shifted_chebyshev_polynomial_w_composite(const Tensor& x, const Tensor& n) {
  return evaluated("shifted_chebyshev_polynomial_w", Polynomials::chebyshev_w,
                   shifted("shifted_chebyshev_polynomial_w", x), n);
}
Tensor hermite_polynomial_h_composite(const Tensor& x, const Tensor& n) {
  return evaluated("hermite_polynomial_h", Polynomials::hermite_h, x, n);
}
Tensor hermite_polynomial_he_composite(const Tensor& x, const Tensor& n) {
  return evaluated("hermite_polynomial_he", Polynomials::hermite_he, x, n);
}
Tensor laguerre_polynomial_l_composite(const Tensor& x, const Tensor& n) {
  return evaluated("laguerre_polynomial_l", Polynomials::laguerre, x, n);
}
Tensor legendre_polynomial_p_composite(const Tensor& x, const Tensor& n) {
  return evaluated("legendre_polynomial_p", Polynomials::legendre, x, n);
}

}  // namespace vesta
