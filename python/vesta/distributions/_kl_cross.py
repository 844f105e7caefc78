"""Divergences of distributions of two families: KL(p || q) = -H(p) - E log q(x).

For each family q there is one function, of the cross entropy -E log q(x) by moments of p; the moments of p stand in
``_MOMENTS``. Infinite divergences are a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor

from ._kl_registry import register_kl
from ._special import digamma, lgamma, log_beta, xlogy
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant

#: p -> families q without the values that p has: the divergence is infinite.
_INFINITE: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _x_log_x(x: Tensor) -> Tensor:
    return xlogy(x, x)


def _uniform_log(low: Tensor, high: Tensor) -> Tensor:
    """E log x for x uniform on [low, high]."""
    return (_x_log_x(high) - _x_log_x(low)) / (high - low) - 1


#: E log x of positive variables.
_LOG_MOMENTS: dict[type, Callable[[Any], Tensor]] = {
    Beta: lambda p: digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _uniform_log(p.low, p.high),
}

#: E exp(-t x), t > 0.
_EXPONENTIAL_MOMENTS: dict[type, Callable[[Any, Tensor], Tensor]] = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (-p.concentration * (t / p.rate).log1p()).exp(),
    Normal: lambda p, t: (0.5 * (p.scale * t).square() - p.loc * t).exp(),
    Uniform: lambda p, t: ((-t * p.low).exp() - (-t * p.high).exp()) / (t * (p.high - p.low)),
}


def _range(p: Any) -> tuple[Any, Any]:
    """Returns the ends of the support of p."""
    if isinstance(p, Uniform):
        return p.low, p.high
    if isinstance(p, Pareto):
        return p.scale, math.inf
    return p.support.lower_bound, getattr(p.support, "upper_bound", math.inf)


def _outside(p: Any, low: Any, high: Any, like: Tensor) -> Tensor:
    """Returns where p has values outside [low, high]."""
    p_low, p_high = _range(p)
    zero = vesta.zeros_like(like)
    return (zero + p_low < low) | (zero + p_high > high)


def _finite(moment: Tensor) -> tuple[Tensor, Tensor]:
    """Returns a moment with 0 where it is infinite, so that gradients there are 0, and where that is."""
    infinite = moment.detach().isinf()
    return vesta.where(infinite, 0.0, moment), infinite


def _of_normal(p: Any, q: Any) -> Tensor:
    (mean, no_mean), (variance, no_variance) = _finite(p.mean), _finite(p.variance)
    square = variance + (mean - q.loc).square()
    value = q.scale.log() + 0.5 * math.log(2 * math.pi) + 0.5 * square / q.scale.square()
    return vesta.where(no_mean | no_variance, math.inf, value)


def _of_exponential(p: Any, q: Any) -> Tensor:
    mean, no_mean = _finite(p.mean)
    value = q.rate * mean - q.rate.log()
    return vesta.where(no_mean | _outside(p, 0.0, math.inf, value), math.inf, value)


def _of_gamma(p: Any, q: Any) -> Tensor:
    a, rate = q.concentration, q.rate
    mean, no_mean = _finite(p.mean)
    value = lgamma(a) - a * rate.log() - (a - 1) * _LOG_MOMENTS[_family(p, _LOG_MOMENTS)](p) + rate * mean
    return vesta.where(no_mean | _outside(p, 0.0, math.inf, value), math.inf, value)


def _of_gumbel(p: Any, q: Any) -> Tensor:
    moment = _EXPONENTIAL_MOMENTS[_family(p, _EXPONENTIAL_MOMENTS)](p, q.scale.reciprocal())
    return q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * moment


def _of_uniform(p: Any, q: Any) -> Tensor:
    value = (q.high - q.low).log() + vesta.zeros_like(p.mean)
    return vesta.where(_outside(p, q.low, q.high, value), math.inf, value)


def _of_beta(p: Any, q: Any) -> Tensor:
    """For a uniform p."""
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _uniform_log(p.low, p.high) + (b - 1) * _uniform_log(1 - p.high, 1 - p.low)
    value = log_beta(a, b) - logs
    return vesta.where(_outside(p, 0.0, 1.0, value), math.inf, value)


def _of_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    value = -p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    return vesta.where(_outside(p, 0.0, 1.0, value), math.inf, value)


def _of_pareto(p: Any, q: Any) -> Tensor:
    """For a uniform p."""
    value = (q.alpha + 1) * _uniform_log(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return vesta.where(p.low < q.scale, math.inf, value)


def _of_laplace(p: Any, q: Any) -> Tensor:
    """For a normal p: the mean of |x - loc| is that of a folded normal variable (Leone and others, 1961)."""
    away = p.loc - q.loc
    ratio = away / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.square()).exp() + away * (ratio / math.sqrt(2)).erf()
    return (2 * q.scale).log() + distance / q.scale


def _of_poisson(p: Any, q: Any) -> Tensor:
    """For a Bernoulli p: 0! = 1! = 1."""
    return q.rate - p.probs * q.rate.log()


#: q, the cross entropy -E log q(x), and the families p that it is registered for.
_CROSS: list[tuple[type, Callable[[Any, Any], Tensor], tuple[type, ...]]] = [
    (Normal, _of_normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
    (Exponential, _of_exponential, (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)),
    (Gamma, _of_gamma, (Beta, Exponential, Pareto, Uniform)),
    (Gumbel, _of_gumbel, (Exponential, Gamma, Normal, Uniform)),
    (Uniform, _of_uniform, (Beta, ContinuousBernoulli)),
    (Beta, _of_beta, (Uniform,)),
    (ContinuousBernoulli, _of_continuous_bernoulli, (Beta, Uniform)),
    (Pareto, _of_pareto, (Uniform,)),
    (Laplace, _of_laplace, (Normal,)),
    (Poisson, _of_poisson, (Bernoulli,)),
]


def _family(p: Any, table: dict[type, Any]) -> type:
    return next(family for family in table if isinstance(p, family))


def _infinite(p: Any, q: Any) -> Tensor:
    shape = vesta.broadcast_shapes(p.batch_shape, q.batch_shape)
    return vesta.full_like(p.mean, math.inf).expand(shape)


def _register() -> None:
    for p, others in _INFINITE.items():
        for q in others:
            register_kl(p, q)(_infinite)
    for q, cross_entropy, families in _CROSS:
        for p in families:
            register_kl(p, q)(lambda p, q, cross=cross_entropy: cross(p, q) - p.entropy())


_register()
