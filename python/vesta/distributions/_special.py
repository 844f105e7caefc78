"""Special functions that distributions need: the ops of the library where it has them, else compositions of its ops.

``lgamma`` is ``vesta.lgamma`` if that exists. The compositions compute in float64 and return the dtype of their
argument; their errors are around 1e-14, and their gradients are the exact formulas. Each stands here only until an op
of its name replaces it.

Sources: [AS] Abramowitz and Stegun, Handbook of Mathematical Functions, 1964; [W] S. Winitzki, A handy approximation
for the error function and its inverse, 2008; [TW] Trefethen and Weideman, The exponentially convergent trapezoidal
rule, SIAM Review 56, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import vesta
import vesta.autograd
from vesta import Tensor

from .utils import broadcast_all, euler_constant

_WIDE = vesta.float64

# B_2k / (2k (2k - 1)), the coefficients of Stirling's series of log Gamma, [AS] 6.1.41.
_STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188]
# B_2k, the Bernoulli numbers.
_BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798]


def _zeta(k: float, n: float = 100.0) -> float:
    """The zeta function of k, by its sum up to n and the Euler-Maclaurin formula for the rest, [AS] 23.2.3."""
    rest = n / (k - 1) + 0.5 + k / (12 * n) - k * (k + 1) * (k + 2) / (720 * n**3)
    return sum(m**-k for m in range(1, int(n))) + rest * n**-k


_ZETA = [_zeta(float(k)) for k in range(2, 34)]
#: From here on the asymptotic series of Gamma and its relatives have the precision of float64.
_ASYMPTOTIC = 9.0
_SHIFT = int(_ASYMPTOTIC)


def _op(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the op of the library, or the composition if there is none."""
    return getattr(vesta, name, None) or otherwise


def _wide(x: Tensor) -> Tensor:
    return x.detach().to(_WIDE)


def _shifted(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns x, or 1 where it needs no shift into the range of the asymptotic series, and which do need one."""
    small = x < _ASYMPTOTIC
    return vesta.where(small, x, 1.0), small


def _sin_pi(x: Tensor) -> Tensor:
    """sin(pi x), with a sign that is right for all x."""
    whole = x.floor()
    return (math.pi * (x - whole)).sin() * (1 - 2 * (whole % 2))


def _stirling(z: Tensor) -> Tensor:
    """log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2, for z of at least ``_ASYMPTOTIC``."""
    series = vesta.zeros_like(z)
    for c in reversed(_STIRLING):
        series = series / (z * z) + c
    return series / z


def _lgamma_near_1(z: Tensor) -> Tensor:
    """log Gamma(1 + z) for |z| <= 0.3, which keeps its precision near the zero; [AS] 6.1.33."""
    series = vesta.zeros_like(z)
    for k in range(len(_ZETA) + 1, 1, -1):
        series = (series + _ZETA[k - 2] / k) * -z
    return -z * (series + euler_constant)


def _lgamma_positive(x: Tensor) -> Tensor:
    near, small = _shifted(x)
    product = near
    for k in range(1, _SHIFT):
        product = product * (near + k)
    z = vesta.where(small, x + _SHIFT, x)
    value = (z - 0.5) * z.log() - z + 0.5 * math.log(2 * math.pi) + _stirling(z)
    value = vesta.where(small, value - product.log(), value)
    away = (x - 1).clamp(-0.3, 0.3), (x - 2).clamp(-0.3, 0.3)
    value = vesta.where((x - 1).abs() <= 0.3, _lgamma_near_1(away[0]), value)
    value = vesta.where((x - 2).abs() <= 0.3, away[1].log1p() + _lgamma_near_1(away[1]), value)
    return vesta.where(x == math.inf, math.inf, value)


def _lgamma_value(x: Tensor) -> Tensor:
    """log |Gamma(x)|: Stirling's series and Gamma(x + 1) = x Gamma(x); reflection below 0, [AS] 6.1.17."""
    x = _wide(x)
    positive = _lgamma_positive(vesta.where(x > 0, x, 1 - x))
    reflected = math.log(math.pi) - _sin_pi(x).abs().log() - positive
    return vesta.where(x > 0, positive, vesta.where(x == x.floor(), math.inf, reflected))


def _digamma_value(x: Tensor) -> Tensor:
    """The derivative of log Gamma: its asymptotic series, [AS] 6.3.18, and 6.3.5 and 6.3.7 for what is below."""
    x = _wide(x)
    argument = vesta.where(x > 0, x, 1 - x)
    near, small = _shifted(argument)
    steps = sum((near + k).reciprocal() for k in range(_SHIFT))
    z = vesta.where(small, argument + _SHIFT, argument)
    series = vesta.zeros_like(z)
    for k in range(len(_BERNOULLI), 0, -1):
        series = (series + _BERNOULLI[k - 1] / (2 * k)) / (z * z)
    value = z.log() - 0.5 / z - series
    value = vesta.where(small, value - steps, value)
    fraction = x - x.floor()
    reflected = value - math.pi * (math.pi * fraction).cos() / (math.pi * fraction).sin()
    pole = vesta.where(x == 0, -math.inf, math.nan)
    return vesta.where(x > 0, value, vesta.where(fraction == 0, pole, reflected))


def _polygamma_value(n: int, x: Tensor) -> Tensor:
    """(-1)**(n + 1) n! zeta(n + 1, x) with the zeta function by the Euler-Maclaurin sum, [AS] 6.4.10, 23.1.30."""
    x, s = _wide(x), n + 1.0
    reach = _SHIFT + n  # higher orders converge later
    small = x < reach
    near = vesta.where(small, x, 1.0)
    steps = sum((near + k) ** -s for k in range(reach))
    z = vesta.where(small, x + reach, x)
    total, factor = z ** (1 - s) / (s - 1) + 0.5 * z**-s, s
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b / math.factorial(2 * k) * factor * z ** (1 - s - 2 * k)
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    total = vesta.where(small, total + steps, total)
    value = (-1.0) ** (n + 1) * math.factorial(n) * total
    if n == 1:  # psi'(1 - x) + psi'(x) = (pi / sin(pi x))**2, [AS] 6.4.7
        below = vesta.where(x > 0, -1.0, x)
        reflected = (math.pi / _sin_pi(below)) ** 2 - _polygamma_value(1, 1 - below) if bool((x <= 0).any()) else value
        return vesta.where(x > 0, value, vesta.where(x == x.floor(), math.inf, reflected))
    return vesta.where(x > 0, value, math.nan)


class _Lgamma(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _lgamma_value(x).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * digamma(ctx.saved_tensors[0])


class _Polygamma(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, n: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.n = n
        return (_polygamma_value(n, x) if n else _digamma_value(x)).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * polygamma(ctx.n + 1, ctx.saved_tensors[0]), None


lgamma = _op("lgamma", _Lgamma.apply)
digamma = _op("digamma", lambda x: _Polygamma.apply(x, 0))
polygamma = _op("polygamma", lambda n, x: _Polygamma.apply(x, n))


def mvlgamma(x: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""
    halves = vesta.arange(p, dtype=x.dtype, device=x.device) / 2
    return lgamma(x.unsqueeze(-1) - halves).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def _expm1_value(x: Tensor) -> Tensor:
    """exp(x) - 1, near 0 as 2 t / (1 - t) with t = tanh(x / 2)."""
    t = (x.clamp(-1, 1) / 2).tanh()
    return vesta.where(x.abs() < 1, 2 * t / (1 - t), x.exp() - 1)


class _Expm1(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _expm1_value(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * ctx.saved_tensors[0].exp()


expm1 = _op("expm1", _Expm1.apply)


def _erfinv_value(x: Tensor) -> Tensor:
    """The inverse of erf: a first value of [W], then Halley's steps on erf, in the tails on erfc."""
    x = _wide(x)
    a = x.abs()
    t = (1 - a * a).clamp(min=1e-300).log()
    u = 2 / (math.pi * 0.147) + t / 2
    y = vesta.where(a < 0.1, a * (math.sqrt(math.pi) / 2), ((u * u - t / 0.147).sqrt() - u).clamp(min=0).sqrt())
    y = y.clamp(max=5.9)
    for _ in range(4):
        residual = vesta.where(a < 0.5, y.erf() - a, (1 - a) - y.erfc())
        step = residual * (y * y).exp() * (math.sqrt(math.pi) / 2)
        y = y - step / (1 + y * step)
    y = vesta.where(a == 1, math.inf, vesta.where(a > 1, math.nan, y))
    return y * x.sign()


class _Erfinv(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = _erfinv_value(x).to(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        y = ctx.saved_tensors[0]
        return grad * (y * y).exp() * (math.sqrt(math.pi) / 2)


erfinv = _op("erfinv", _Erfinv.apply)


class _Xlogy(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return vesta.where((x == 0) & (y == y), 0.0, x * y.log())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return vesta.where((x == 0) & (y <= 0), 0.0, grad * y.log()), grad * x / y


def _xlogy(x: Any, y: Any) -> Tensor:
    return _Xlogy.apply(*broadcast_all(x, y))


xlogy = _op("xlogy", _xlogy)
tan = _op("tan", lambda x: x.sin() / x.cos())
atan = _op("atan", lambda x: vesta.atan2(x, vesta.ones_like(x)))


def _atanh(x: Tensor) -> Tensor:
    return 0.5 * (x.log1p() - (-x).log1p())


atanh = _op("atanh", _atanh)
acos = _op("acos", lambda x: vesta.atan2(((1 - x) * (1 + x)).clamp(min=0).sqrt(), x))


def _cumprod(x: Tensor, dim: int) -> Tensor:
    """The running product along a dimension, in log2(n) steps."""
    step, n = 1, x.shape[dim]
    while step < n:
        x = vesta.cat([x.narrow(dim, 0, step), x.narrow(dim, step, n - step) * x.narrow(dim, 0, n - step)], dim)
        step *= 2
    return x


cumprod = _op("cumprod", _cumprod)


def one_hot(index: Tensor, n: int) -> Tensor:
    """Returns vectors of n zeros with a 1 at ``index``: int64 of shape [..., n]."""
    return (index.unsqueeze(-1) == vesta.arange(n, device=index.device)).long()


#: Nodes of the trapezoidal rule for Bessel functions below ``_BESSEL_ASYMPTOTIC``.
_BESSEL_NODES = 64
_BESSEL_ASYMPTOTIC = 60.0


def log_bessel(x: Tensor, order: int) -> Tensor:
    """log I_n(x) of orders 0 and 1 for x >= 0, of the dtype of x.

    Up to 60 the trapezoidal rule of the integral [AS] 9.6.19, which converges geometrically for periodic functions
    [TW]; beyond, the asymptotic series [AS] 9.7.1.
    """
    wide = x.to(_WIDE)
    is_small = wide < _BESSEL_ASYMPTOTIC
    small = vesta.where(is_small, wide, 1.0).unsqueeze(-1)
    theta = (vesta.arange(_BESSEL_NODES, dtype=_WIDE, device=x.device) + 0.5) * (math.pi / _BESSEL_NODES)
    if order == 0:
        value = (small * (theta.cos() - 1)).exp().mean(-1)
    else:  # I_1(x) = x / pi times the integral of exp(x cos t) sin(t)**2, without cancellation near 0
        value = small.squeeze(-1) * ((small * (theta.cos() - 1)).exp() * theta.sin() ** 2).mean(-1)
    large = vesta.where(is_small, 100.0, wide)
    term, series = vesta.ones_like(large), vesta.ones_like(large)
    for k in range(1, 16):
        term = term * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * large)
        series = series + term
    asymptotic = series.log() - 0.5 * (2 * math.pi * large).log()
    return (wide + vesta.where(is_small, value.log(), asymptotic)).to(x.dtype)


def log_beta(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function, log B(a, b), [AS] 6.2.2."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)
