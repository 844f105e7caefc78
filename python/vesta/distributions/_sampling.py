"""Random numbers of the families without a formula for their quantiles: gamma, Poisson, binomial, categorical.

Each takes a tensor of parameters that has the shape of the result. Like ops they take a ``generator``; they compute in
float64. An op of the library is used where it exists (``vesta.poisson``, ``vesta.multinomial``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import vesta
import vesta.autograd
from vesta import Tensor

from ._special import _lgamma_value
from ._tails import beta_sample_grad, gamma_sample_grad

_WIDE = vesta.float64


def _uniform(shape: Any, device: Any, generator: Any = None) -> Tensor:
    """Uniform numbers in (0, 1)."""
    return vesta.rand(shape, dtype=_WIDE, device=device, generator=generator).clamp(min=1e-300)


def _until_accepted(propose: Callable[..., tuple[Tensor, Tensor]], *parameters: Tensor) -> Tensor:
    """Draws by rejection: ``propose`` returns values and which are accepted; the others are drawn again."""
    value, ok = propose(*parameters)
    while not bool(ok.all()):
        again = (~ok).nonzero().reshape(-1)
        new, accepted = propose(*(p[again] for p in parameters))
        value[again] = new
        ok[again] = accepted
    return value


def standard_log_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draws logarithms of gamma variables of rate 1, in float64: they do not underflow for small concentrations.

    G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM TOMS 26, 2000; below 1 with
    G(a) = G(a + 1) U**(1/a) in logarithms.
    """
    a = concentration.detach().to(_WIDE).reshape(-1)
    d = vesta.where(a < 1, a + 1, a) - 1 / 3

    def propose(d: Tensor) -> tuple[Tensor, Tensor]:
        z = vesta.randn(d.shape, dtype=_WIDE, device=d.device, generator=generator)
        u = _uniform(d.shape, d.device, generator)
        v = (1 + z / (9 * d).sqrt()).clamp(min=0) ** 3
        safe = vesta.where(v > 0, v, 1.0)
        # A NaN parameter is accepted: its draw is NaN.
        ok = (v > 0) & (u.log() < 0.5 * z * z + d * (1 - safe + safe.log())) | d.isnan()
        return d.log() + safe.log(), ok

    value = _until_accepted(propose, d)
    boost = _uniform(a.shape, a.device, generator).log() / a
    return vesta.where(a < 1, value + boost, value).reshape(concentration.shape)


class _Derivative(vesta.autograd.Function):
    """The derivative of a sample; its own derivative is refused, not taken as 0."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        return function(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise NotImplementedError("rsample: the second derivative of a sample in its concentration is not implemented.")


class _StandardGamma(vesta.autograd.Function):
    """Gamma variables of rate 1 with the implicit derivative in the concentration (``_tails``)."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor, generator: vesta.Generator | None) -> Tensor:
        value = standard_log_gamma(concentration, generator).exp().to(concentration.dtype)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * _Derivative.apply(gamma_sample_grad, *ctx.saved_tensors), None


class _SampleDirichlet(vesta.autograd.Function):
    """Dirichlet variables with the pathwise derivative of Jankowiak and Obermeyer, 2018, equation 8 (``_tails``).

    Moving concentration i moves x_i as in its marginal beta distribution; the rest shrinks in proportion:
    dx_j / da_i = (dx_i / da_i) (d_ij - x_j) / (1 - x_i).
    """

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        value = vesta.softmax(standard_log_gamma(concentration), -1).to(concentration.dtype)
        ctx.save_for_backward(concentration, value)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        a, x = ctx.saved_tensors
        moves = _Derivative.apply(beta_sample_grad, x, a, a.sum(-1, keepdim=True) - a)
        return moves * (grad - (x * grad).sum(-1, keepdim=True))


def standard_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draws gamma variables of rate 1, differentiable in the concentration."""
    return _StandardGamma.apply(concentration, generator)


def dirichlet(concentration: Tensor) -> Tensor:
    """Draws Dirichlet variables, differentiable in the concentration; the last dimension is the simplex."""
    return _SampleDirichlet.apply(concentration)


def _by_inversion(first: Tensor, ratio: Callable[[int], Tensor], generator: Any, longest: int) -> Tensor:
    """Draws counts by adding probabilities, ``first`` for 0 and ``ratio(k)`` from k - 1 to k, up to a uniform."""
    u = _uniform(first.shape, first.device, generator)
    count, term, total = vesta.zeros_like(first), first, first
    for k in range(1, longest):
        beyond = u > total
        if not bool(beyond.any()):
            break
        count = vesta.where(beyond, float(k), count)
        term = term * ratio(k)
        total = total + term
    return count


#: Below this mean counts are drawn by inversion, as the rejection methods demand.
_INVERSION_MEAN = 10.0
#: No count is drawn beyond: the probability of more is below 1e-60 for a mean of 10.
_LONGEST = 130


def poisson(rate: Tensor, generator: Any = None) -> Tensor:
    """Draws Poisson counts, of the dtype of ``rate``; a NaN rate gives NaN.

    From a rate of 10 on by W. Hoermann's PTRS, The transformed rejection method for generating Poisson random
    variables, 1993.
    """
    if hasattr(vesta, "poisson") and bool(vesta.isfinite(rate).all()):
        return vesta.poisson(rate, generator)
    flat = rate.detach().to(_WIDE).reshape(-1)
    small = flat < _INVERSION_MEAN
    low = vesta.where(small, flat, 1.0)
    few = _by_inversion((-low).exp(), lambda k: low / k, generator, _LONGEST)

    def propose(rate: Tensor) -> tuple[Tensor, Tensor]:
        b = 0.931 + 2.53 * rate.sqrt()
        a = -0.059 + 0.02483 * b
        u, v = _uniform(rate.shape, rate.device, generator) - 0.5, _uniform(rate.shape, rate.device, generator)
        near = 0.5 - u.abs()
        k = ((2 * a / near + b) * u + rate + 0.43).floor()
        quick = (near >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        possible = (k >= 0) & ((near >= 0.013) | (v <= near))
        left = (v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (near * near) + b)).log()
        right = k * rate.log() - rate - _lgamma_value(k.clamp(min=0) + 1)
        return k, quick | possible & (left <= right)

    ok = ~small & (flat < math.inf)
    many = _until_accepted(propose, vesta.where(ok, flat, 100.0))
    value = vesta.where(small, few, vesta.where(ok, many, flat))
    return value.reshape(rate.shape).to(rate.dtype)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Draws binomial counts, of the dtype of ``prob``.

    From a mean of 10 on by W. Hoermann's BTRS, The generation of binomial random variates, 1993.
    """
    n, p_given = count.detach().to(_WIDE).reshape(-1), prob.detach().to(_WIDE).reshape(-1)
    flipped = p_given > 0.5
    p = vesta.where(flipped, 1 - p_given, p_given)
    small = (n * p < _INVERSION_MEAN) | (p == 0)  # of infinitely many, too
    low_n, low_p = vesta.where(small & (p != 0), n, 0.0), vesta.where(small, p, 0.0)
    odds = low_p / (1 - low_p)
    few = _by_inversion(
        (low_n * (-low_p).log1p()).exp(), lambda k: ((low_n - k + 1) / k).clamp(min=0) * odds, generator, _LONGEST
    )
    few = vesta.minimum(few, low_n)

    def propose(n: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
        spread = (n * p * (1 - p)).sqrt()
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * p
        alpha = (2.83 + 5.1 / b) * spread
        top = ((n + 1) * p).floor()
        u, v = _uniform(n.shape, n.device, generator) - 0.5, _uniform(n.shape, n.device, generator)
        near = 0.5 - u.abs()
        k = ((2 * a / near + b) * u + n * p + 0.5).floor()
        possible = (k >= 0) & (k <= n)
        quick = (near >= 0.07) & (v <= 0.92 - 4.2 / b)
        left = (v * alpha / (a / (near * near) + b)).log()
        at = vesta.minimum(k.clamp(min=0), n)
        right = _lgamma_value(top + 1) + _lgamma_value(n - top + 1) - _lgamma_value(at + 1) - _lgamma_value(n - at + 1)
        right = right + (at - top) * (p.log() - (-p).log1p())
        return k, possible & (quick | (left <= right))

    usable = ~small & ~(n * p).isnan()
    many = _until_accepted(propose, vesta.where(usable, n, 100.0), vesta.where(usable, p, 0.5))
    value = vesta.where(small, few, vesta.where(usable, many, math.nan))
    return vesta.where(flipped, n - value, value).reshape(prob.shape).to(prob.dtype)


def categorical(probs: Tensor, n: int) -> Tensor:
    """Draws n indices for each row of ``probs`` [rows, k], with replacement: int64 of shape [rows, n].

    The running sums are searched by bisection for a uniform number; an index of probability 0 is never drawn.
    """
    if hasattr(vesta, "multinomial") and n > 0:
        return vesta.multinomial(probs, n, True)
    sums = probs.detach().to(_WIDE).cumsum(-1)
    total = sums[:, -1:]
    mark = vesta.rand(len(probs), n, dtype=_WIDE, device=probs.device) * total
    mark = vesta.minimum(mark, total * (1 - 2.0**-52))
    low = vesta.zeros(len(probs), n, dtype=vesta.int64, device=probs.device)
    high = vesta.full_like(low, probs.shape[-1] - 1)
    for _ in range((probs.shape[-1] - 1).bit_length()):  # the first index whose sum exceeds the mark
        middle = (low + high) // 2
        above = sums.gather(-1, middle) > mark
        low, high = vesta.where(above, low, middle + 1), vesta.where(above, middle, high)
        low = vesta.minimum(low, high)
    return low


def gumbel(uniform: Tensor) -> Tensor:
    """Returns Gumbel variables from uniform ones: -log(-log(u))."""
    return -(-uniform.log()).log()


__all__ = ["binomial", "categorical", "dirichlet", "gumbel", "poisson", "standard_gamma", "standard_log_gamma"]
