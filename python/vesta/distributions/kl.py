"""Divergences of pairs of distributions: ``kl_divergence``, and the formulas within families.

``_kl_cross`` holds the pairs of two families. Formulas: M. Gil, F. Alajaji and T. Linder, Renyi divergence measures for
commonly used univariate continuous distributions, 2013, where a function states no other source.
"""

from __future__ import annotations

import math
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta.nn.functional import softplus

from . import _kl_cross, _linalg  # noqa: F401  (registers the pairs of two families)
from ._kl_registry import _KL_MEMOIZE, _KL_REGISTRY, _dispatch_kl, kl_divergence, register_kl  # noqa: F401
from ._special import digamma, lgamma
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]


def _weighted(weight: Tensor, ratio: Tensor, impossible: Tensor) -> Tensor:
    """weight times a log ratio: 0 where the weight is 0, inf where q is 0 and the weight is not."""
    return vesta.where(weight == 0, 0.0, vesta.where(impossible, math.inf, weight * ratio))


@register_kl(Bernoulli, Bernoulli)
def _(p: Any, q: Any) -> Tensor:
    one = _weighted(p.probs, softplus(-q.logits) - softplus(-p.logits), q.probs == 0)
    return one + _weighted(1 - p.probs, softplus(q.logits) - softplus(p.logits), q.probs == 1)


@register_kl(Categorical, Categorical)
def _(p: Any, q: Any) -> Tensor:
    return _weighted(p.probs, p.logits - q.logits, q.probs == 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: Any, q: Any) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Binomial, Binomial)
def _(p: Any, q: Any) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    trial = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return vesta.where(p.total_count > q.total_count, math.inf, p.total_count * trial)


@register_kl(Beta, Beta)
def _(p: Any, q: Any) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    constant = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return constant + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p: Any, q: Any) -> Tensor:
    constants = p._cont_bern_log_norm() + (-p.probs).log1p() - q._cont_bern_log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + constants


@register_kl(Exponential, Exponential)
def _(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Tensor:
    """F(q) - F(p) - <q - p, F'(p)>, a Bregman divergence (Nielsen and Nock, 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    natural, normalizer, gradients = p._normalizer_and_gradients()
    result = q._log_normalizer(*q._natural_params) - normalizer  # of the batch shape
    for a, b, gradient in zip(natural, q._natural_params, gradients):
        term = (b - a) * gradient
        result = result - _sum_rightmost(term, term.dim() - result.dim())
    return result


@register_kl(Gamma, Gamma)
def _(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    scale = b * (p.rate / q.rate).log() + (q.rate - p.rate) * (a / p.rate)
    return scale + lgamma(b) - lgamma(a) + (a - b) * digamma(a)


@register_kl(Gumbel, Gumbel)
def _(p: Any, q: Any) -> Tensor:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    moment = (lgamma(1 + ratio) - shift).exp()  # E exp(-(x - q.loc) / q.scale)
    return shift - ratio.log() + euler_constant * (ratio - 1) + moment - 1


@register_kl(Geometric, Geometric)
def _(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _(p: Any, q: Any) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return ratio * (-away / p.scale).exp() + away / q.scale - ratio.log() - 1


@register_kl(Normal, Normal)
def _(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return vesta.where(p.scale < q.scale, math.inf, value)


@register_kl(Poisson, Poisson)
def _(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _(p: Any, q: Any) -> Tensor:
    value = ((q.high - q.low) / (p.high - p.low)).log()
    return vesta.where((q.low > p.low) | (q.high < p.high), math.inf, value)


@register_kl(Cauchy, Cauchy)
def _(p: Any, q: Any) -> Tensor:
    """F. Chyzak and F. Nielsen, A closed-form formula for the divergence between Cauchy distributions, 2019."""
    square = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return square.log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: the transforms or event shapes of the two distributions differ.")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: reinterpreted_batch_ndims of the two distributions differ.")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


def _pieces(p: Any) -> list[Tensor]:
    """Returns matrices [..., n, m] whose squares M M^T add up to the covariance."""
    if isinstance(p, MultivariateNormal):
        return [p._unbroadcasted_scale_tril]
    return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]


def _log_det(p: Any) -> Tensor:
    return p._logdet() if isinstance(p, LowRankMultivariateNormal) else 2 * _linalg.half_logdet(_pieces(p)[0])


def _trace(q: Any, piece: Tensor) -> Tensor:
    """Returns the trace of Q^-1 M M^T."""

    def square(matrix: Tensor) -> Tensor:
        return matrix.square().sum((-2, -1))

    if isinstance(q, MultivariateNormal):
        return square(_linalg.solve_lower(q._unbroadcasted_scale_tril, piece))
    return square(piece * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)) - square(q._whitened() @ piece)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p: Any, q: Any) -> Tensor:
    """(tr(Q^-1 P) + d^T Q^-1 d - n + log det Q - log det P) / 2 for covariances P, Q and the means' difference d."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    away = q.loc - p.loc
    if isinstance(q, LowRankMultivariateNormal):
        square = q._mahalanobis(away)
    else:
        square = _linalg.mahalanobis(q._unbroadcasted_scale_tril, away)
    trace = sum(_trace(q, piece) for piece in _pieces(p))
    return 0.5 * (trace + square - p.event_shape[0] + _log_det(q) - _log_det(p))
