// Special functions that are computed element by element, in double: Bessel and Airy functions, the incomplete gamma
// functions, Hurwitz's zeta function, orthogonal polynomials. Formulas for vectors are in special_math.h.
//
// The Chebyshev series were computed for this file, with 40 digits, to 2^-57 of their largest value.
#pragma once
#include <vesta/core/ops/special_math.h>

namespace vesta::math {

/// The number of a function of one variable; the derivative of each is made of others.
enum class SpecialFunction : int {
  bessel_j0,
  bessel_j1,
  bessel_y0,
  bessel_y1,
  bessel_k0,
  bessel_k1,
  bessel_k0e,  // e^x K0(x)
  bessel_k1e,
  airy_ai,
  airy_ai_slope,
  erfcx,
  spherical_j0,
  spherical_j1,
};

/// The number of a family of orthogonal polynomials.
enum class Polynomials : int {
  chebyshev_t,
  chebyshev_u,
  chebyshev_v,
  chebyshev_w,
  hermite_h,
  hermite_he,
  laguerre,
  legendre
};

// As for digamma: Note [Finding a carrier's own functions] in math.h.
namespace adl_call {
void _special_function() = delete;
void _orthogonal_polynomial() = delete;
void zeta() = delete;
void _zeta_slope() = delete;
void _igamma_slope() = delete;
void _gamma_density() = delete;
inline namespace VESTA_ISA_NS {
template <class V>
VESTA_HD VESTA_INLINE auto call_special_function(const V& x, int64_t which) {
  return _special_function(x, which);
}
template <class V>
VESTA_HD VESTA_INLINE auto call_orthogonal_polynomial(const V& x, const V& n, int64_t family, int64_t order) {
  return _orthogonal_polynomial(x, n, family, order);
}
template <class V>
VESTA_HD VESTA_INLINE auto call_zeta(const V& s, const V& q) {
  return zeta(s, q);
}
template <class V>
VESTA_HD VESTA_INLINE auto call_zeta_slope(const V& s, const V& q) {
  return _zeta_slope(s, q);
}
template <class V>
VESTA_HD VESTA_INLINE auto call_igamma_slope(const V& a, const V& x) {
  return _igamma_slope(a, x);
}
template <class V>
VESTA_HD VESTA_INLINE auto call_gamma_density(const V& a, const V& x) {
  return _gamma_density(a, x);
}
}  // namespace VESTA_ISA_NS
}  // namespace adl_call

inline namespace VESTA_ISA_NS {

/// Applies a function of two doubles to each pair of lanes.
template <class F, class V>
VESTA_HD VESTA_INLINE V lane_by_lane(F f, V a, V b) {
  if constexpr (Scalar<V>) {
    return V(f(double(a), double(b)));
  } else {
    for (int i = 0; i < V::N; ++i) a.raw[i] = typename V::value_type(f(double(a[i]), double(b[i])));
    return a;
  }
}

inline constexpr double kInfinity = static_cast<double>(INFINITY), kNaN = static_cast<double>(NAN);
inline constexpr double kPi = 3.14159265358979323846, kTwoOverPi = 0.63661977236758134308;

/// Sums a series of Chebyshev polynomials at t in [-1, 1].
VESTA_OUT_OF_LINE double clenshaw(double t, const double* c, int count) {
  double b = 0, before = 0;
  for (int k = count - 1; k > 0; --k) {
    const double next = 2 * t * b - before + c[k];
    before = b;
    b = next;
  }
  return t * b - before + c[0];
}
template <int count>
VESTA_HD VESTA_INLINE double chebyshev_sum(double t, const double (&c)[count]) {
  return clenshaw(t, c, count);
}

// ---- Bessel functions -----------------------------------------------------------------------------------------------
// For x <= 8: Chebyshev series in x^2 / 32 - 1 (for Y: of Y(x) - 2/pi log(x) J(x)). For x > 8, with z = 8 / x and
// u = x - pi/4 - n pi/2: sqrt(pi x / 2) J = P cos u - z Q sin u and sqrt(pi x / 2) Y = P sin u + z Q cos u, where P and
// Q are Chebyshev series in 2 z^2 - 1 (Abramowitz and Stegun, 9.2.5 and 9.2.6).

/// Returns J0(x) for 0 <= x <= 8.
VESTA_OUT_OF_LINE double bessel_j0_near(double x) {
  static constexpr double near[] = {0.15772797147489012,     -0.008723442352852221,   0.2651786132033368,
                                    -0.37009499387264977,    0.15806710233209725,     -0.034893769411408884,
                                    0.004819180069467605,    -0.00046062616620627504, 3.246032882100508e-05,
                                    -1.7619469077621507e-06, 7.608163592418782e-08,   -2.679253530557673e-09,
                                    7.848696314479465e-11,   -1.9438346867370164e-12, 4.125320595634374e-14,
                                    -7.588508125447546e-16,  1.2218515873961411e-17};
  return chebyshev_sum(x * x * 0.03125 - 1, near);
}
/// Returns J1(x) for 0 <= x <= 8.
VESTA_OUT_OF_LINE double bessel_j1_near(double x) {
  static constexpr double near[] = {
      0.08104484632565812,    -0.1489751450676521,    0.1609992623572097,     -0.08268049176681791,
      0.022213639654966037,   -0.003646940600769276,  0.0004050337728354822,  -3.255554866857259e-05,
      1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09,  -1.178026622695885e-10,
      3.160154580348003e-12,  -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17};
  return x * chebyshev_sum(x * x * 0.03125 - 1, near);
}
/// Returns J0(x), or Y0(x), for x > 8.
VESTA_OUT_OF_LINE double bessel_0_far(double x, bool second) {
  static constexpr double cosine[] = {0.9994603493475187,      -0.0005365220468132117,  3.0751847875194745e-06,
                                      -5.1705945376060975e-08, 1.6306464635151382e-09,  -7.86409137723707e-11,
                                      5.168262387349193e-12,   -4.3045788699253914e-13, 4.3265957431549404e-14,
                                      -5.069034095935236e-15,  6.748072215733873e-16,   -1.0011513723467786e-16,
                                      1.6305919233744186e-17};
  static constexpr double sine[] = {
      -0.015555854605337009,   6.838519942611649e-05,  -7.414498411060647e-07, 1.7972457247968992e-08,
      -7.27191593686632e-10,   4.2201219046687385e-11, -3.206747420996635e-12, 3.006145125351706e-13,
      -3.336328185322427e-14,  4.255225040245461e-15,  -6.09993013164005e-16,  9.662128970303257e-17,
      -1.6686065214378146e-17, 3.1082440486738143e-18, -6.191115787358145e-19, 1.3091448717220122e-19};
  const double z = 8 / x, t = 2 * z * z - 1, s = sin(x), c = cos(x);
  // sqrt(2) cos(x - pi/4) = cos x + sin x, sqrt(2) sin(x - pi/4) = sin x - cos x
  const double p = chebyshev_sum(t, cosine), q = z * chebyshev_sum(t, sine);
  return (second ? p * (s - c) + q * (c + s) : p * (c + s) - q * (s - c)) / sqrt(kPi * x);
}
/// Returns J1(x), or Y1(x), for x > 8.
VESTA_OUT_OF_LINE double bessel_1_far(double x, bool second) {
  static constexpr double cosine[] = {1.0009030408600137,     0.0008989898330859408,   -3.987284300488908e-06,
                                      6.177633960644299e-08,  -1.8718907491063067e-09, 8.816898659582339e-11,
                                      -5.704863640395645e-12, 4.699195515230542e-13,   -4.6842237839904895e-14,
                                      5.452674896044717e-15,  -7.221180842274018e-16,  1.0667689114335412e-16,
                                      -1.7312313216116335e-17};
  static constexpr double sine[] = {0.04677778706953532,     -9.62772354915708e-05,   9.138615257955454e-07,
                                    -2.0959781384083424e-08, 8.229193327650554e-10,   -4.686363688176945e-11,
                                    3.5152187949686082e-12,  -3.2643156743279e-13,    3.5967765829165294e-14,
                                    -4.5612523950772974e-15, 6.508282957783384e-16,   -1.0269147531823243e-16,
                                    1.767635548776479e-17,   -3.2834519872981614e-18, 6.524081149589261e-19};
  const double z = 8 / x, t = 2 * z * z - 1, s = sin(x), c = cos(x);
  // sqrt(2) cos(x - 3 pi/4) = sin x - cos x, sqrt(2) sin(x - 3 pi/4) = -sin x - cos x
  const double p = chebyshev_sum(t, cosine), q = z * chebyshev_sum(t, sine);
  return (second ? q * (s - c) - p * (s + c) : p * (s - c) + q * (s + c)) / sqrt(kPi * x);
}
VESTA_OUT_OF_LINE double bessel_j0(double x) {
  const double size = abs(x);
  if (!(size < kInfinity)) return kNaN;
  return size <= 8 ? bessel_j0_near(size) : bessel_0_far(size, false);
}
VESTA_OUT_OF_LINE double bessel_j1(double x) {
  const double size = abs(x);
  if (!(size < kInfinity)) return kNaN;
  const double y = size <= 8 ? bessel_j1_near(size) : bessel_1_far(size, false);
  return x < 0 || (x == 0 && 1 / x < 0) ? -y : y;
}
VESTA_OUT_OF_LINE double bessel_y0(double x) {
  static constexpr double near[] = {-0.03314611320328494,    -0.2744743055297453,    0.17903431407718265,
                                    0.26156734625504663,     -0.17730201278114358,   0.04719668959576339,
                                    -0.007287962479552079,   0.0007531135932577742,  -5.632079141056987e-05,
                                    3.206532537654801e-06,   -1.44072332740187e-07,  5.248794787330516e-09,
                                    -1.5837552541812015e-10, 4.02633081830612e-12,   -8.747341203310769e-14,
                                    1.6434898714919468e-15,  -2.6977881152566837e-17};
  if (!(x >= 0 && x < kInfinity)) return kNaN;
  if (x == 0) return -kInfinity;
  return x <= 8 ? kTwoOverPi * log(x) * bessel_j0_near(x) + chebyshev_sum(x * x * 0.03125 - 1, near)
                : bessel_0_far(x, true);
}
VESTA_OUT_OF_LINE double bessel_y1(double x) {
  static constexpr double near[] = {
      0.0025380132357417816,   -0.01608717304766875,   -0.09591204536083074,    0.08445197259652346,
      -0.028328123944594365,   0.005289897544167113,   -0.0006414551451326356,  5.505982873338744e-05,
      -3.53808001868935e-06,   1.7707804556154404e-07, -7.11055004989928e-09,   2.344337905911516e-10,
      -6.4651518414115946e-12, 1.51429151205002e-13,   -3.0511859694473254e-15, 5.34668038572867e-17};
  if (!(x >= 0 && x < kInfinity)) return kNaN;
  if (x == 0) return -kInfinity;
  return x <= 8 ? kTwoOverPi * (log(x) * bessel_j1_near(x) - 1 / x) + x * chebyshev_sum(x * x * 0.03125 - 1, near)
                : bessel_1_far(x, true);
}

// ---- modified Bessel functions of the second kind -------------------------------------------------------------------

/// Returns K0(x), or e^x K0(x). For x <= 2: -log(x / 2) I0(x) plus a Chebyshev series in x^2 / 2 - 1; for x > 2,
/// sqrt(x) e^x K0(x) is a Chebyshev series in 4 / x - 1.
VESTA_OUT_OF_LINE double bessel_k0(double x, bool scaled) {
  static constexpr double first[] = {1.6029228068079633,     0.638809625651177,      0.03685485969436176,
                                     0.00098287812725148,    1.4983654208927293e-05, 1.4738449008423848e-07,
                                     1.0114797900674826e-09, 5.1149979020112795e-12, 1.984280622680562e-14,
                                     6.090516506058955e-17};
  static constexpr double near[] = {-0.2676636966169514,   0.3442898999246285,     0.0359799365153615,
                                    0.001264615411446926,  2.286212103119452e-05,  2.5347910790261494e-07,
                                    1.904516377220209e-09, 1.0349695257633625e-11, 4.2598161427910826e-14,
                                    1.3744654358807508e-16};
  static constexpr double far[] = {
      1.2201515410329777,     -0.0314481013119645,     0.0015698838857300533,  -0.00012849549581627802,
      1.39498137188765e-05,   -1.8317555227191195e-06, 2.766813639445015e-07,  -4.660489897687948e-08,
      8.574034017414225e-09,  -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
      1.8559491149549264e-11, -4.514597883374519e-12,  1.1403405882073441e-12, -2.9800969231481784e-13,
      8.032890775068375e-14,  -2.2275133267462965e-14, 6.340076476276646e-15,  -1.848593377920907e-15,
      5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17, -1.6475805939842632e-17};
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kInfinity;
  if (x > 2) return chebyshev_sum(4 / x - 1, far) / sqrt(x) * (scaled ? 1.0 : exp(-x));
  const double t = x * x * 0.5 - 1, y = chebyshev_sum(t, near) - log(x * 0.5) * chebyshev_sum(t, first);
  return scaled ? y * exp(x) : y;
}
/// Returns K1(x), or e^x K1(x), in the same way.
VESTA_OUT_OF_LINE double bessel_k1(double x, bool scaled) {
  static constexpr double first[] = {0.6417589969911874,     0.1475393201491934,     0.005898742680020788,
                                     0.00011988137174638708, 1.4739165119093128e-06, 1.2138074968740922e-08,
                                     7.161106692799279e-11,  3.17487931131012e-13,   1.0962998348773076e-15};
  static constexpr double near[] = {-0.06409034516866254,    -0.10916919599320105,   -0.006636878452817714,
                                    -0.00016822792382067343, -2.389559180803608e-06, -2.1853569024549695e-08,
                                    -1.3982271326113327e-10, -6.618562752976041e-13, -2.4134516242987822e-15,
                                    -6.990873731242567e-18};
  static constexpr double far[] = {
      1.3603130952422213,      0.10392373657681724,    -0.002857816859622779,   0.00019521551847135162,
      -1.936197974166083e-05,  2.406484947837217e-06,  -3.5019606030878126e-07, 5.7410841254500495e-08,
      -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11,
      -2.129967838427791e-11,  5.139639673482343e-12,  -1.2891739609498229e-12, 3.348419666052243e-13,
      -8.976705182010146e-14,  2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
      -6.057047270643018e-16,  1.8380935752430455e-16, -5.689462849193648e-17,  1.7940510478863572e-17};
  if (!(x >= 0)) return kNaN;
  if (x == 0) return kInfinity;
  if (x > 2) return chebyshev_sum(4 / x - 1, far) / sqrt(x) * (scaled ? 1.0 : exp(-x));
  const double t = x * x * 0.5 - 1;
  const double y = 1 / x + x * (chebyshev_sum(t, near) + log(x * 0.5) * chebyshev_sum(t, first));
  return scaled ? y * exp(x) : y;
}

/// Returns sin(x) / x.
VESTA_OUT_OF_LINE double spherical_bessel_j0(double x) { return x == 0 ? 1.0 : abs(x) == kInfinity ? 0.0 : sin(x) / x; }
/// Returns (sin(x) / x - cos(x)) / x, by its power series near 0.
VESTA_OUT_OF_LINE double spherical_bessel_j1(double x) {
  if (abs(x) == kInfinity) return 0;
  const double u = x * x;
  if (u < 1)
    return x * polynomial(u, 1.0 / 3, -1.0 / 30, 1.0 / 840, -1.0 / 45360, 1.0 / 3991680, -1.0 / 518918400,
                          1.0 / 93405312000.0);
  return (sin(x) / x - cos(x)) / x;
}

// ---- Airy's function and the scaled error function ------------------------------------------------------------------
// With z = 2/3 |x|^(3/2): Ai(x) = e^-z / (2 sqrt(pi) x^(1/4)) times a series in 1 / z on the right; on the left
// Ai(x) = (F sin(z + pi/4) - G cos(z + pi/4)) / (sqrt(pi) |x|^(1/4)), F and z G series in 1 / z^2 (Abramowitz and
// Stegun, 10.4.59 and 10.4.60); between -4 and 2 a series in x.

VESTA_OUT_OF_LINE double airy_ai(double x) {
  static constexpr double middle[] = {
      0.06078525685079726,     0.18996030881729123,     -0.250924387032336,      -0.09512014013503055,
      0.20236324198370076,     -0.06418728306305249,    -0.026814703186039963,   0.024051904281273857,
      -0.00413259164974895,    -0.0020196817905494225,  0.0011250768750654559,   -0.00011697538709676606,
      -7.125499253060682e-05,  2.8167833107042442e-05,  -1.7594742389691562e-06, -1.4587201524168717e-06,
      4.388747958436033e-07,   -1.4627095866197506e-08, -1.9495992841846798e-08, 4.660552774163884e-09,
      -5.106245117904234e-11,  -1.8343326708789198e-10, 3.5857642041278925e-11,  2.658241327479573e-13,
      -1.2805447574198059e-12, 2.0885896604502407e-13,  4.8741837202287105e-15,  -6.895080927885035e-15,
      9.51965014570017e-16,    3.5978991422145034e-17,  -2.9502705833721254e-17};
  static constexpr double right[] = {
      0.9844053049171552,     -0.014792784850104199,   0.0007327177465426715,  -6.12595423417825e-05,
      6.83476697557269e-06,   -9.237229735403982e-07,  1.436225340438052e-07,  -2.489319422322096e-08,
      4.709793440054328e-09,  -9.583863708112733e-10,  2.0745855483677591e-10, -4.737267332192277e-11,
      1.1336099808224236e-11, -2.827706782319351e-12,  7.320712095125598e-13,  -1.9599793911089723e-13,
      5.4101162570683925e-14, -1.5356466802223836e-14, 4.472340393300025e-15,  -1.3338094674756683e-15,
      4.066582046456231e-16,  -1.265583225645289e-16,  4.015126334015871e-17,  -1.2969972135960937e-17};
  static constexpr double even[] = {0.9993708890742778,     -0.0006216836584374116,  7.181193774368645e-06,
                                    -2.316269813501758e-07, 1.3216283888528755e-08,  -1.0938736172758127e-09,
                                    1.1794620737908535e-10, -1.5518841909929856e-11, 2.386927411492466e-12,
                                    -4.16552889201035e-13,  8.071678110741467e-14,   -1.708757321110567e-14,
                                    3.902945148540815e-15,  -9.523976784907064e-16,  2.4632810885752603e-16,
                                    -6.709077463464858e-17, 1.913939683718707e-17};
  static constexpr double odd[] = {
      0.012904069793077502,   -0.00011417159701561301, 2.47015331514187e-06,   -1.1276384836703058e-07,
      8.114132516809686e-09,  -7.96449699929011e-10,   9.810535081564676e-11,  -1.438554557834067e-11,
      2.4232142723810082e-12, -4.572243294578044e-13,  9.485713571010158e-14,  -2.1334713360480614e-14,
      5.145258245310423e-15,  -1.3189653961186086e-15, 3.5685214438497966e-16, -1.0130701015142451e-16,
      3.003133317484731e-17,  -9.257863950661513e-18,  2.957519212083966e-18,  -9.761492965947109e-19,
      3.320022740137531e-19,  -1.160938053896864e-19};
  if (!(abs(x) < kInfinity)) return kNaN;
  if (x >= -4 && x <= 2) return chebyshev_sum((x + 1) / 3, middle);
  const double size = abs(x), root = sqrt(size), z = size * root * (2.0 / 3), quarter = sqrt(root);
  if (x > 0)
    return exp(-z) * chebyshev_sum(3.771236166328253 / z - 1, right) / (3.544907701811032 * quarter);  // 2 sqrt(pi)
  const double r = 5.333333333333333 / z, t = 2 * r * r - 1;
  const double f = chebyshev_sum(t, even), g = r * chebyshev_sum(t, odd), s = sin(z), c = cos(z);
  return (f * (s + c) - g * (c - s)) / (2.5066282746310002 * quarter);  // sqrt(2 pi)
}
/// Returns Ai'(x), by series as those of Ai.
VESTA_OUT_OF_LINE double airy_ai_slope(double x) {
  static constexpr double middle[] = {
      -0.08903097507670835,    0.08268865904182816,     -0.3047021560316108,     0.41725450841827616,
      -0.11446187576154976,    -0.1223808035382592,     0.09949573444862524,     -0.015121990794099342,
      -0.012746485530652765,   0.006918498004561723,    -0.0006283947873562287,  -0.0005820144958746491,
      0.00022942471802005576,  -1.1974555629794552e-05, -1.4696502240978745e-05, 4.4472039339175715e-06,
      -1.0930071681002717e-07, -2.3412722174752973e-07, 5.647303634021124e-08,   -1.7530764536815795e-10,
      -2.5606321325312916e-09, 5.055250370190732e-10,   7.433606699195872e-12,   -2.0387046253017667e-11,
      3.3576366637271946e-12,  1.0166986569922788e-13,  -1.2334610368987345e-13, 1.71840145485969e-14,
      7.653530120571872e-16,   -5.859990567100852e-16,  6.975917789571653e-17};
  static constexpr double right[] = {
      1.0223917438953567,      0.021419543172417697,   -0.0008929320864098833,  7.04386560665416e-05,
      -7.629019563020457e-06,  1.0124594126717678e-06, -1.5547836430438127e-07, 2.670534777173515e-08,
      -5.017799973983537e-09,  1.015476324864757e-09,  -2.1883687800953883e-10, 4.97854884096185e-11,
      -1.1876037266305446e-11, 2.9543896474165515e-12, -7.630714992633907e-13,  2.038758045182824e-13,
      -5.617262461082948e-14,  1.5918346754340464e-14, -4.629150125159948e-15,  1.3787341769318453e-15,
      -4.198446246812051e-16,  1.3051699130322144e-16, -4.1364905599761646e-17, 1.3349430157944717e-17};
  static constexpr double even[] = {1.0007456538095232,      0.0007375422856386275,   -7.849801565961249e-06,
                                    2.4655502716618296e-07,  -1.3885571094301025e-08, 1.1403684313690508e-09,
                                    -1.2232366466937644e-10, 1.6034952133843246e-11,  -2.45935637996635e-12,
                                    4.2823904886738336e-13,  -8.283148973288884e-14,  1.7508938758431875e-14,
                                    -3.994102734612813e-15,  9.735750616386858e-16,   -2.515650485808415e-16,
                                    6.845945511425819e-17,   -1.951521788851582e-17};
  static constexpr double odd[] = {-0.018098282437612256,   0.0001281007511593734,   -2.65500172474274e-06,
                                   1.1904673712210888e-07,  -8.482562218915023e-09,  8.274607868036566e-10,
                                   -1.0148759776135788e-10, 1.483429522431258e-11,   -2.492677995348663e-12,
                                   4.694083956331007e-13,   -9.72278882968205e-14,   2.1838338362045186e-14,
                                   -5.260630058279949e-15,  1.3471902494272265e-15,  -3.6416850206399986e-16,
                                   1.0330364769083983e-16,  -3.0601928138159024e-17, 9.427857988457444e-18,
                                   -3.0101163095904045e-18, 9.929951330591304e-19,   -3.375715368009566e-19};
  if (!(abs(x) < kInfinity)) return kNaN;
  if (x >= -4 && x <= 2) return chebyshev_sum((x + 1) / 3, middle);
  const double size = abs(x), root = sqrt(size), z = size * root * (2.0 / 3), quarter = sqrt(root);
  if (x > 0) return -exp(-z) * chebyshev_sum(3.771236166328253 / z - 1, right) * quarter / 3.544907701811032;
  const double r = 5.333333333333333 / z, t = 2 * r * r - 1;
  const double f = chebyshev_sum(t, even), g = r * chebyshev_sum(t, odd), s = sin(z), c = cos(z);
  return -(f * (c - s) + g * (s + c)) * quarter / 2.5066282746310002;
}

/// Returns e^(x^2) erfc(x): (1 + 2 x) times it is a series in (x - 3.75) / (x + 3.75) for x >= 0 (Shepherd and
/// Laframboise, "Chebyshev approximation of (1 + 2 x) exp(x^2) erfc(x) in 0 <= x < infinity", 1981).
VESTA_OUT_OF_LINE double erfcx(double x) {
  static constexpr double c[] = {
      1.1775789345674017,     -0.004590054580646478,  -0.08424913336651792,    0.05920993999819189,
      -0.026658668435305753,  0.009074997670705265,   -0.002413163540417608,   0.0004907758365258086,
      -6.916973302501207e-05, 4.13902798607301e-06,   7.74038306619849e-07,    -2.1886401049234397e-07,
      1.076499946567091e-08,  4.521959811218287e-09,  -7.754400208831351e-10,  -6.318088340886684e-11,
      2.86879501093067e-11,   1.9455868545777347e-13, -9.65469674843344e-13,   3.25254814814874e-14,
      3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688648e-15, 7.418235256624044e-17,
      5.068148904796111e-17};
  const double size = abs(x);
  if (!(size == size)) return x;
  double y = 0;
  if (size < 1e9) y = chebyshev_sum((size - 3.75) / (size + 3.75), c) / (1 + 2 * size);
  else y = 0.56418958354775628695 / size;  // 1 / sqrt(pi)
  if (x >= 0) return y;
  return x < -27 ? kInfinity : 2 * exp(x * x) - y;
}

VESTA_OUT_OF_LINE double special_function(SpecialFunction which, double x) {
  switch (which) {
    case SpecialFunction::bessel_j0: return bessel_j0(x);
    case SpecialFunction::bessel_j1: return bessel_j1(x);
    case SpecialFunction::bessel_y0: return bessel_y0(x);
    case SpecialFunction::bessel_y1: return bessel_y1(x);
    case SpecialFunction::bessel_k0: return bessel_k0(x, false);
    case SpecialFunction::bessel_k1: return bessel_k1(x, false);
    case SpecialFunction::bessel_k0e: return bessel_k0(x, true);
    case SpecialFunction::bessel_k1e: return bessel_k1(x, true);
    case SpecialFunction::airy_ai: return airy_ai(x);
    case SpecialFunction::airy_ai_slope: return airy_ai_slope(x);
    case SpecialFunction::erfcx: return erfcx(x);
    case SpecialFunction::spherical_j0: return spherical_bessel_j0(x);
    case SpecialFunction::spherical_j1: return spherical_bessel_j1(x);
  }
  return kNaN;
}
/// Computes the function that `which` names of each element.
template <class V>
VESTA_HD VESTA_INLINE V special_function(SpecialFunction which, const V& x) {
  if constexpr (Numeric<V>) return lane_by_lane([which](double v) { return special_function(which, v); }, x);
  else return adl_call::call_special_function(x, int64_t(which));
}

// ---- orthogonal polynomials -----------------------------------------------------------------------------------------

inline constexpr int kMaxDerivative = 4;  // of a polynomial
inline constexpr double kMaxDegree = 1 << 17;  // of a polynomial without a closed form

/// Returns the Chebyshev polynomial of a high degree n by its closed form (Abramowitz and Stegun, 22.3.15 and 22.3.16,
/// and for V and W Mason and Handscomb, "Chebyshev Polynomials", 2003, 1.5 and 1.6).
VESTA_OUT_OF_LINE double chebyshev_closed(Polynomials family, double n, double x) {
  const bool outside = abs(x) > 1;
  const double size = abs(x), sign = x < 0 && floor(n * 0.5) * 2 != n ? -1 : 1;
  if (outside) {  // with x = cosh a
    const double a = log(size + sqrt(size * size - 1)), half = (n + 0.5) * a;
    if (family == Polynomials::chebyshev_t) return sign * cosh(n * a);
    if (family == Polynomials::chebyshev_u) return sign * sinh((n + 1) * a) / sinh(a);
    // V_n(-x) = (-1)^n W_n(x)
    const bool cosines = (family == Polynomials::chebyshev_v) == (x > 0);
    return sign * (cosines ? cosh(half) / cosh(a * 0.5) : sinh(half) / sinh(a * 0.5));
  }
  const double a = atan2(sqrt((1 - x) * (1 + x)), x), half = (n + 0.5) * a;
  const bool ends = size == 1;
  if (family == Polynomials::chebyshev_t) return ends ? sign : cos(n * a);
  if (family == Polynomials::chebyshev_u) return ends ? sign * (n + 1) : sin((n + 1) * a) / sin(a);
  if (family == Polynomials::chebyshev_v) return ends ? (x > 0 ? 1 : sign * (2 * n + 1)) : cos(half) / cos(a * 0.5);
  return ends ? (x > 0 ? 2 * n + 1 : sign) : sin(half) / sin(a * 0.5);
}

/// Returns the derivative of an order of the polynomial of degree n, n without its fraction: 0 for n < 0, NaN for
/// degrees above kMaxDegree unless the polynomial has a closed form. By the recurrences p_(k + 1) = (a x + b) p_k - c
/// p_(k - 1) (Abramowitz and Stegun, 22.7), each derived as often as asked.
VESTA_OUT_OF_LINE double polynomial_of_degree(Polynomials family, double degree, double x, int order) {
  const double n = trunc(degree);
  if (!(n == n) || !(x == x) || order > kMaxDerivative) return kNaN;
  if (n < order) return 0;
  const bool of_chebyshev = int(family) <= int(Polynomials::chebyshev_w);
  if (of_chebyshev && order == 0 && n > 512) return chebyshev_closed(family, n, x);
  if (n > kMaxDegree) return kNaN;
  const bool twice = of_chebyshev || family == Polynomials::hermite_h;
  double before[kMaxDerivative + 1] = {1}, now[kMaxDerivative + 1] = {twice ? 2 * x : x, twice ? 2.0 : 1.0};
  if (family == Polynomials::chebyshev_t) now[0] = x, now[1] = 1;
  if (family == Polynomials::chebyshev_v) now[0] = 2 * x - 1;
  if (family == Polynomials::chebyshev_w) now[0] = 2 * x + 1;
  if (family == Polynomials::laguerre) now[0] = 1 - x, now[1] = -1;
  if (n == 0) return order == 0 ? 1 : 0;
  for (int k = 1; k < int(n); ++k) {
    double a = twice ? 2 : 1, b = 0, c = 1;
    if (family == Polynomials::hermite_h) c = 2 * k;
    if (family == Polynomials::hermite_he) c = k;
    if (family == Polynomials::laguerre) a = -1.0 / (k + 1), b = double(2 * k + 1) / (k + 1), c = double(k) / (k + 1);
    if (family == Polynomials::legendre) a = double(2 * k + 1) / (k + 1), c = double(k) / (k + 1);
    for (int d = order; d >= 0; --d) {
      const double next = (a * x + b) * now[d] + (d ? d * a * now[d - 1] : 0.0) - c * before[d];
      before[d] = now[d];
      now[d] = next;
    }
  }
  return now[order];
}
/// Computes the derivative of an order of the polynomials of degrees n.
template <class V>
VESTA_HD VESTA_INLINE V orthogonal_polynomial(Polynomials family, const V& x, const V& n, int order) {
  if constexpr (Numeric<V>)
    return lane_by_lane([=](double v, double degree) { return polynomial_of_degree(family, degree, v, order); }, x, n);
  else return adl_call::call_orthogonal_polynomial(x, n, int64_t(family), order);
}

// ---- Hurwitz's zeta function ----------------------------------------------------------------------------------------

/// Returns the sum of (q + k)^-s over k = 0, 1, ...; infinite at its poles, NaN for s < 1 and, for q < 0, where s is no
/// integer.
VESTA_OUT_OF_LINE double zeta_of_numbers(double s, double q) {
  if (!(s == s) || !(q == q) || s < 1) return kNaN;
  if (s == 1) return kInfinity;
  if (q <= 0 && floor(q) == q) return kInfinity;
  if (q < 0 && floor(s) != s) return kNaN;
  return hurwitz_zeta(s, q);
}
template <class V>
VESTA_HD VESTA_INLINE V zeta(const V& s, const V& q) {
  if constexpr (Numeric<V>) return lane_by_lane([](double a, double b) { return zeta_of_numbers(a, b); }, s, q);
  else return adl_call::call_zeta(s, q);
}

/// Returns the derivative of zeta(s, q) by s for q > 0, the formula of hurwitz_zeta_above derived; NaN elsewhere.
VESTA_OUT_OF_LINE double zeta_slope_of_numbers(double s, double q) {
  if (!(s > 1) || !(q > 0)) return kNaN;
  if (s == kInfinity || q == kInfinity) return 0;
  return hurwitz_zeta_above(s, q, true);
}
template <class V>
VESTA_HD VESTA_INLINE V zeta_slope(const V& s, const V& q) {
  if constexpr (Numeric<V>) return lane_by_lane([](double a, double b) { return zeta_slope_of_numbers(a, b); }, s, q);
  else return adl_call::call_zeta_slope(s, q);
}

// ---- incomplete gamma functions -------------------------------------------------------------------------------------

/// Returns x^a e^-x / gamma(a + 1).
VESTA_OUT_OF_LINE double gamma_density(double a, double x) {
  if (a < 50) return exp(a * log(x) - x - lgamma(a + 1));
  // Stirling's series of gamma(a + 1), and log(x / a) - (x - a) / a without cancellation
  const double d = (x - a) / a, inverse = 1 / a;
  const double series = inverse * polynomial(inverse * inverse, 1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680);
  return exp(a * (log1p(d) - d) - series) / sqrt(2 * kPi * a);
}
/// Returns the density of the gamma distribution, x^(a - 1) e^-x / gamma(a).
VESTA_OUT_OF_LINE double density_of_numbers(double a, double x) {
  constexpr double kTiny = 1e-30;  // below, x^a may vanish where x^(a - 1) does not
  if (x == 0) {
    if (a > 1) return 0;
    if (a == 1) return 1;
    return a > 0 ? kInfinity : kNaN;
  }
  if (x < kTiny && x > 0 && a > 0) return exp((a - 1) * log(x) - x - lgamma(a));
  return gamma_density(a, x) * (a / x);
}
template <class V>
VESTA_HD VESTA_INLINE V density_of_gamma(const V& a, const V& x) {
  if constexpr (Numeric<V>) {
    return lane_by_lane([](double s, double v) { return density_of_numbers(s, v); }, a, x);
  } else {
    return adl_call::call_gamma_density(a, x);
  }
}
/// Returns the integral from x to end of the density t^(a - 1) e^-t / gamma(a), or of its derivative by a, by Gauss and
/// Legendre with 18 points in each of eight pieces.
VESTA_OUT_OF_LINE double gamma_integral(double a, double x, double end, bool slope) {
  static constexpr double points[] = {0.0042174157895344955, 0.022088025214301088, 0.05369876675122215,
                                      0.09814752051373843,   0.1541564784698234,   0.22011458446302623,
                                      0.2941244192685787,    0.37405688715424723,  0.45761249347913235};
  static constexpr double weights[] = {0.010808006763240749, 0.024857274447484697, 0.03821286512744478,
                                       0.05047102205314364,  0.06127760335573935,  0.07032145733532547,
                                       0.07734233756313277,  0.08213824187291652,  0.08457119148157195};
  const double center = slope ? digamma(a) : 0;
  double sum = 0;
  for (int k = 0; k < 8 * 18; ++k) {
    const int part = k / 18, point = k % 18;
    const double y = point < 9 ? points[point] : 1 - points[17 - point];
    const double t = x + (end - x) * (0.125 * (part + y)), density = gamma_density(a, t) * (a / t);
    sum += weights[point < 9 ? point : 17 - point] * (slope ? density * (log(t) - center) : density);
  }
  return sum * (end - x) * 0.125;
}
/// Returns where the density of the gamma distribution has vanished beside its value at x: right of x, or left.
VESTA_HD VESTA_INLINE double gamma_far(double a, double x, bool right) {
  const double width = sqrt(a), top = a - 1;
  if (right) return (x > top ? x : top) + 12 * width + 40;
  const double low = (x < top ? x : top) - 12 * width;
  return low > 0 ? low : 0;
}
/// Returns the regularized incomplete gamma function P(a, x), or Q(a, x) = 1 - P(a, x): by its power series below a +
/// 1, by Lentz's continued fraction above (Abramowitz and Stegun, 6.5.29 and 6.5.31), by quadrature for large a.
VESTA_OUT_OF_LINE double incomplete_gamma(double a, double x, bool upper) {
  const double none = upper ? 1 : 0, all = upper ? 0 : 1;
  if (!(a >= 0) || !(x >= 0)) return kNaN;
  if (a == 0) return x > 0 ? all : kNaN;
  if (x == 0) return none;
  if (a == kInfinity) return x == kInfinity ? kNaN : none;
  if (x == kInfinity) return all;
  const double distance = abs(x - a) / a;
  if (a >= 100 && distance < 0.9) {
    const double right = x > a - 1 ? gamma_integral(a, x, gamma_far(a, x, true), false) : 1.0;
    const double left = x > a - 1 ? 1 - right : gamma_integral(a, gamma_far(a, x, false), x, false);
    return upper ? (x > a - 1 ? right : 1 - left) : left;
  }
  const double density = gamma_density(a, x);
  if (x < a + 1) {
    double term = 1, sum = 1;
    for (int k = 1; k < 10000 && term > sum * 1e-17; ++k) {
      term *= x / (a + k);
      sum += term;
    }
    const double lower = density * sum;
    return upper ? 1 - lower : lower;
  }
  const double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  for (int k = 1; k < 10000; ++k) {
    const double top = -k * (k - a);
    b += 2;
    d = top * d + b;
    d = 1 / (abs(d) < tiny ? tiny : d);
    c = b + top / c;
    if (abs(c) < tiny) c = tiny;
    const double factor = d * c;
    h *= factor;
    if (abs(factor - 1) < 1e-16) break;
  }
  const double above = density * a * h;
  return upper ? above : 1 - above;
}

/// Returns the derivative of P(a, x) by a: by its power series below a + 1, else by quadrature.
VESTA_OUT_OF_LINE double incomplete_gamma_slope(double a, double x) {
  if (!(a > 0) || !(x >= 0) || a == kInfinity) return kNaN;
  if (x == 0 || x == kInfinity) return 0;
  if (x >= a + 1) return -gamma_integral(a, x, gamma_far(a, x, true), true);
  if (a >= 100) return gamma_integral(a, gamma_far(a, x, false), x, true);
  double term = 1, sum = 1, harmonic = 0, slopes = 0;  // of x^k / ((a + 1) ... (a + k))
  for (int k = 1; k < 10000 && term > sum * 1e-18; ++k) {
    term *= x / (a + k);
    harmonic += 1 / (a + k);
    sum += term;
    slopes += term * harmonic;
  }
  return gamma_density(a, x) * ((log(x) - digamma(a + 1)) * sum - slopes);
}
template <class V>
VESTA_HD VESTA_INLINE V igamma_slope(const V& a, const V& x) {
  if constexpr (Numeric<V>) return lane_by_lane([](double s, double v) { return incomplete_gamma_slope(s, v); }, a, x);
  else return adl_call::call_igamma_slope(a, x);
}

}  // namespace VESTA_ISA_NS
}  // namespace vesta::math
