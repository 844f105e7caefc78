// Docs of the topic special: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char mvlgamma[] =
    "mvlgamma(input, p): the logarithm of the multivariate gamma function of dimension p, elementwise: p (p - 1) / "
    "4 * log(pi) + the sum of lgamma(x - i / 2) over i < p. Error: p < 1.";
inline constexpr char mvlgamma_[] = "mvlgamma_(p): mvlgamma in place.";
inline constexpr char bessel_j0[] = "bessel_j0(input): the Bessel function of the first kind of order 0, elementwise.";
inline constexpr char bessel_j1[] = "bessel_j1(input): the Bessel function of the first kind of order 1, elementwise.";
inline constexpr char bessel_y0[] =
    "bessel_y0(input): the Bessel function of the second kind of order 0, elementwise; -inf at 0, NaN below.";
inline constexpr char bessel_y1[] =
    "bessel_y1(input): the Bessel function of the second kind of order 1, elementwise; -inf at 0, NaN below.";
inline constexpr char modified_bessel_i0[] =
    "modified_bessel_i0(input): the modified Bessel function of the first kind of order 0, as i0, elementwise.";
inline constexpr char modified_bessel_i1[] =
    "modified_bessel_i1(input): the modified Bessel function of the first kind of order 1, as i1, elementwise.";
inline constexpr char modified_bessel_k0[] =
    "modified_bessel_k0(input): the modified Bessel function of the second kind of order 0, elementwise; inf at 0, "
    "NaN below.";
inline constexpr char modified_bessel_k1[] =
    "modified_bessel_k1(input): the modified Bessel function of the second kind of order 1, elementwise; inf at 0, "
    "NaN below.";
inline constexpr char erfcx[] =
    "erfcx(input): the scaled complementary error function, exp(x ** 2) * erfc(x), elementwise.";
inline constexpr char airy_ai[] = "airy_ai(x): the Airy function Ai, elementwise.";
inline constexpr char scaled_modified_bessel_k0[] =
    "scaled_modified_bessel_k0(x): e ** x * modified_bessel_k0(x), elementwise.";
inline constexpr char scaled_modified_bessel_k1[] =
    "scaled_modified_bessel_k1(x): e ** x * modified_bessel_k1(x), elementwise.";
inline constexpr char spherical_bessel_j0[] =
    "spherical_bessel_j0(x): the spherical Bessel function of the first kind of order 0, sin(x) / x, elementwise.";
inline constexpr char chebyshev_polynomial_t[] =
    "chebyshev_polynomial_t(x, n): the Chebyshev polynomial of the first kind of degree n, cos(n a) for x = cos(a), "
    "elementwise with broadcasting; n counts without its fraction, 0 for n < 0.";
inline constexpr char shifted_chebyshev_polynomial_t[] =
    "shifted_chebyshev_polynomial_t(x, n): chebyshev_polynomial_t(2 x - 1, n), elementwise with broadcasting.";
inline constexpr char chebyshev_polynomial_u[] =
    "chebyshev_polynomial_u(x, n): the Chebyshev polynomial of the second kind of degree n, sin((n + 1) a) / sin(a) "
    "for x = cos(a), elementwise with broadcasting; n counts without its fraction, 0 for n < 0.";
inline constexpr char shifted_chebyshev_polynomial_u[] =
    "shifted_chebyshev_polynomial_u(x, n): chebyshev_polynomial_u(2 x - 1, n), elementwise with broadcasting.";
inline constexpr char chebyshev_polynomial_v[] =
    "chebyshev_polynomial_v(x, n): the Chebyshev polynomial of the third kind of degree n, cos((n + 1/2) a) / cos(a /"
    " 2) for x = cos(a), elementwise with broadcasting; n counts without its fraction, 0 for n < 0.";
inline constexpr char shifted_chebyshev_polynomial_v[] =
    "shifted_chebyshev_polynomial_v(x, n): chebyshev_polynomial_v(2 x - 1, n), elementwise with broadcasting.";
inline constexpr char chebyshev_polynomial_w[] =
    "chebyshev_polynomial_w(x, n): the Chebyshev polynomial of the fourth kind of degree n, sin((n + 1/2) a) / sin(a "
    "/ 2) for x = cos(a), elementwise with broadcasting; n counts without its fraction, 0 for n < 0.";
inline constexpr char shifted_chebyshev_polynomial_w[] =
    "shifted_chebyshev_polynomial_w(x, n): chebyshev_polynomial_w(2 x - 1, n), elementwise with broadcasting.";
inline constexpr char hermite_polynomial_h[] =
    "hermite_polynomial_h(x, n): the physicist's Hermite polynomial of degree n, H(k + 1) = 2 x H(k) - 2 k H(k - 1), "
    "elementwise with broadcasting; n counts without its fraction, 0 for n < 0. NaN for n > 131072.";
inline constexpr char hermite_polynomial_he[] =
    "hermite_polynomial_he(x, n): the probabilist's Hermite polynomial of degree n, He(k + 1) = x He(k) - k He(k - "
    "1), elementwise with broadcasting; n counts without its fraction, 0 for n < 0. NaN for n > 131072.";
inline constexpr char laguerre_polynomial_l[] =
    "laguerre_polynomial_l(x, n): the Laguerre polynomial of degree n, (k + 1) L(k + 1) = (2 k + 1 - x) L(k) - k L(k "
    "- 1), elementwise with broadcasting; n counts without its fraction, 0 for n < 0. NaN for n > 131072.";
inline constexpr char legendre_polynomial_p[] =
    "legendre_polynomial_p(x, n): the Legendre polynomial of degree n, (k + 1) P(k + 1) = (2 k + 1) x P(k) - k P(k - "
    "1), elementwise with broadcasting; n counts without its fraction, 0 for n < 0. NaN for n > 131072.";

}  // namespace vesta::doc
