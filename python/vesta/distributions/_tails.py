"""How samples of gamma and beta distributions move with their parameters: integrals over the tails of densities.

For a sample x of a distribution function F(x; a) the implicit derivative is dx/da = -(dF/da) / f (Figurnov, Mohamed
and Mnih, Implicit reparameterization gradients, 2018; for the Dirichlet distribution Jankowiak and Obermeyer, Pathwise
derivatives beyond the reparameterization trick, 2018). Here

    dF/da = integral over t < x of f(t) (log t - c) dt = -(the same over t > x),

with c = psi(a) for the gamma and psi(a) - psi(a + b) for the beta distribution. Where log x < c the first integrand
has one sign, elsewhere the second, so that the right choice never cancels. With t = x exp(w) or logit t = logit x + w
the integrand is exp(e(w)) times a weight, with a concave exponent e, e(0) = 0. It is integrated in two pieces, up to
the mode of e and from there until e has fallen by ``_DEPTH``, by the tanh-sinh rule (Takahasi and Mori, Double
exponential formulas for numerical integration, 1974).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import vesta
from vesta import Tensor

from ._special import _ASYMPTOTIC, _digamma_value, _expm1_value, _lgamma_value, _stirling

_DEPTH = 42.0
#: Steps of the rule by dtype: errors of about 1e-13, and of 1e-7.
_STEPS = {True: 0.04, False: 0.09}
#: How many elements times nodes are computed at a time.
_CHUNK = 1 << 20


@functools.lru_cache(maxsize=None)
def _rule(precise: bool) -> tuple[list[float], list[float]]:
    """Returns nodes and weights of the tanh-sinh rule on [0, 1]."""
    step = _STEPS[precise]
    reach = round(3.2 / step)
    nodes, weights = [], []
    for k in range(-reach, reach + 1):
        t = k * step
        fall = math.exp(-math.pi * abs(math.sinh(t)))  # 1 / nodes - 1, of the nearer end
        nodes.append(fall / (1 + fall) if t < 0 else 1 / (1 + fall))
        weights.append(step * math.pi * math.cosh(t) * fall / (1 + fall) ** 2)
    return nodes, weights


def _by_chunks(function: Callable[..., Tensor], precise: bool, *tensors: Tensor) -> Tensor:
    """Calls ``function`` with flat columns of the tensors and the rule, so many at a time that memory is bounded."""
    shape, device = tensors[0].shape, tensors[0].device
    nodes, weights = (vesta.tensor(v, dtype=vesta.float64, device=device) for v in _rule(precise))
    flat = [t.reshape(-1, 1) for t in tensors]
    size = max(1, _CHUNK // nodes.numel())
    parts = [function(nodes, weights, *(t[at : at + size] for t in flat)) for at in range(0, len(flat[0]), size)]
    return vesta.cat(parts).reshape(shape) if parts else tensors[0]


def _piece(exponent: Callable, weight: Callable, end: Tensor, nodes: Tensor, weights: Tensor) -> Tensor:
    """Integrates exp(exponent(w)) weight(w) over [0, end]; returns one value for each row."""
    w = end * nodes
    return (exponent(w).exp() * weight(w) * weights).sum(-1) * end.squeeze(-1)


def _newton(value: Callable, slope: Callable, start: Tensor) -> Tensor:
    """Finds the root of a convex increasing function from the right of it; a little too far is far enough."""
    for _ in range(14):
        start = start - value(start) / slope(start)
    return start


def _gamma_integral(upper: Tensor, weight_of: Callable, a: Tensor, x: Tensor, nodes: Tensor, rule: Tensor) -> Tensor:
    """Integrates weight(w) exp(a w - x expm1(w)), over w > 0 where ``upper`` and over w < 0 elsewhere."""
    sign = vesta.where(upper, 1.0, -1.0)
    tiny = 1e-300
    mode = ((a.log() - x.clamp(min=tiny).log()) * sign).clamp(min=0)
    mode = vesta.where(upper, mode, 0.0)

    def exponent(start: Tensor) -> Callable:
        return lambda w: a * (sign * w) - start * _expm1_value(sign * w)

    first = _piece(exponent(x), lambda w: weight_of(sign * w), mode, nodes, rule)
    peak = vesta.where(upper, vesta.maximum(x, a), x)
    d = peak - a
    reach = 2 * _DEPTH / (d + (d * d + 2 * _DEPTH * peak).sqrt()).clamp(min=tiny)
    for _ in range(2):
        reach = ((_DEPTH + a * reach) / peak.clamp(min=tiny)).log1p()
    below = _newton(
        lambda v: a * v + peak * _expm1_value(-v) - _DEPTH,
        lambda v: (a - peak * (-v).exp()).clamp(min=tiny),
        (_DEPTH + peak) / a,
    )
    end = vesta.where(upper, reach, below)
    second = _piece(exponent(peak), lambda w: weight_of(sign * (mode + w)), end, nodes, rule)
    height = (a * mode - x * _expm1_value(mode)).squeeze(-1).exp()
    return first + height * second


def gamma_sample_grad(a: Tensor, x: Tensor) -> Tensor:
    """Returns dx/da of samples x of the standard gamma distribution with shape a; of x's shape and dtype."""

    def integral(nodes: Tensor, weights: Tensor, a: Tensor, x: Tensor) -> Tensor:
        log_x, c = x.clamp(min=1e-300).log(), _digamma_value(a)
        weight = lambda w: (log_x + w - c).abs()
        return _gamma_integral(log_x >= c, weight, a, x, nodes, weights)

    wide = a.detach().to(vesta.float64), x.detach().to(vesta.float64)
    value = wide[1] * _by_chunks(integral, x.dtype == vesta.float64, *wide)
    return vesta.where(wide[1] > 0, value, 0.0).to(x.dtype)


def _log_gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """The logarithm of the density of log t at t = x, a log x - x - log Gamma(a), near x = a without cancellation."""
    away = (x - a) / a
    large = a.clamp(min=_ASYMPTOTIC)
    shifted = a * (away.clamp(min=-0.999).log1p() - away) + 0.5 * (large / (2 * math.pi)).log() - _stirling(large)
    direct = a * x.clamp(min=1e-300).log() - x - _lgamma_value(a)
    return vesta.where((a >= _ASYMPTOTIC) & (away.abs() < 0.9), shifted, direct)


def gammainc_value(a: Tensor, x: Tensor) -> Tensor:
    """Returns the regularized lower incomplete gamma function P(a, x), of x's dtype."""

    def integral(nodes: Tensor, weights: Tensor, a: Tensor, x: Tensor) -> Tensor:
        upper = x >= a
        log_density = _log_gamma_density(a, x)
        value = _gamma_integral(upper, lambda w: vesta.ones_like(w), a, x, nodes, weights)
        value = value * log_density.squeeze(-1).exp()
        return vesta.where(upper.squeeze(-1), 1 - value, value)

    wide_a, wide_x = (t.detach().to(vesta.float64) for t in vesta.broadcast_tensors(a, x))
    ok = (wide_x > 0) & (wide_x < math.inf) & (wide_a > 0)
    value = _by_chunks(integral, x.dtype == vesta.float64, vesta.where(ok, wide_a, 1.0), vesta.where(ok, wide_x, 1.0))
    ends = vesta.where(wide_x == 0, 0.0, vesta.where(wide_x == math.inf, 1.0, math.nan))
    return vesta.where(ok, value, ends).to(x.dtype)


def beta_sample_grad(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Returns (dx/da) / (1 - x) of samples x of the beta distribution with a and b; of x's shape and dtype."""

    def integral(nodes: Tensor, weights: Tensor, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        c = _digamma_value(a) - _digamma_value(a + b)
        upper = x.log() >= c
        # Below, the roles are swapped, so that w > 0 leads away from x. The density of the logit at +w is
        # exp(-(a + b) B(w) - b w) of that at 0, with B(w) = log(q + r exp(-w)).
        q, r = vesta.where(upper, x, 1 - x), vesta.where(upper, 1 - x, x)
        to, fro = vesta.where(upper, a, b), vesta.where(upper, b, a)
        log_q, log_r = q.log(), r.log()
        mode = (to.log() - fro.log() - log_q + log_r).clamp(min=0)
        peak_b = _mixture_log(q, r, mode)
        peak_q, peak_r = (log_q - peak_b).exp(), (log_r - mode - peak_b).exp()

        def weight(start: Tensor) -> Callable:
            def of(w: Tensor) -> Tensor:
                w = start + w
                level = _mixture_log(q, r, w)
                return (vesta.where(upper, log_q - level, log_r - w - level) - c).abs()

            return of

        def exponent(q: Tensor, r: Tensor) -> Callable:
            return lambda w: -(to + fro) * _mixture_log(q, r, w) - fro * w

        first = _piece(exponent(q, r), weight(vesta.zeros_like(mode)), mode, nodes, weights)
        fallen = exponent(peak_q, peak_r)
        end = _newton(
            lambda v: -fallen(v) - _DEPTH,
            lambda v: (fro - (to + fro) * (peak_r.log() - v - _mixture_log(peak_q, peak_r, v)).exp()).clamp(min=1e-300),
            (_DEPTH - (to + fro) * peak_q.log()) / fro,
        )
        second = _piece(fallen, weight(mode), end, nodes, weights)
        return first + exponent(q, r)(mode).squeeze(-1).exp() * second

    wide = [t.detach().to(vesta.float64) for t in (x, a, b)]
    inside = (wide[0] > 0) & (wide[0] < 1)
    safe = vesta.where(inside, wide[0], 0.5)
    value = wide[0] * _by_chunks(integral, x.dtype == vesta.float64, safe, wide[1], wide[2])
    return vesta.where(inside, value, 0.0).to(x.dtype)


def _mixture_log(q: Tensor, r: Tensor, w: Tensor) -> Tensor:
    """log(q + r exp(-w)) for q + r = 1, w >= 0, without cancellation."""
    loss = -r * _expm1_value(-w)
    return vesta.where(loss < 0.5, (-loss.clamp(max=0.5)).log1p(), (q + r * (-w).exp()).log())
