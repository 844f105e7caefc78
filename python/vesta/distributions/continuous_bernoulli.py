"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape
from vesta.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ContinuousBernoulli"]

#: Whether probabilities outside [0, 1] are clamped where ``validate_args`` is not given; ``vesta.as_torch`` sets it.
CLAMPS_PROBABILITIES = False


def _negative_logit(p: Tensor) -> Tensor:
    """log((1 - p) / p) = 2 atanh(1 - 2 p)."""
    return (-p).log1p() - p.log()


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The continuous Bernoulli distribution on [0, 1], with density proportional to p**x (1 - p)**(1 - x).

    Near p = 1/2, where the formulas are 0 / 0, Taylor series are used.

    Args:
        probs: p, a tensor or number in [0, 1]; clamped to [eps, 1 - eps].
        logits: instead of ``probs``, the log odds of p.
        lims: between these values of p Taylor series are used.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, or one lies outside its constraint.

    Formulas: G. Loaiza-Ganem and J. Cunningham, The continuous Bernoulli, 2019, arXiv:1907.06845.

    Example::

        >>> import vesta
        >>> from vesta.distributions import ContinuousBernoulli
        >>> ContinuousBernoulli(0.5).cdf(vesta.tensor(0.25))
        tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"probs": 0, "logits": 0, "_lims": None}

    def __init__(
        self,
        probs: Real | None = None,
        logits: Real | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        self._lims = lims
        if probs is not None:
            default = self._validate_args and not CLAMPS_PROBABILITIES
            checked = default if validate_args is None else validate_args
            if checked and not bool(constraints.unit_interval.check(self.probs).all()):
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        super().__init__(self._param.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter p."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Tensor:
        """Where the exact formulas are used."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """p, moved to where the exact formulas hold."""
        return vesta.where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(p), C = 2 atanh(1 - 2 p) / (1 - 2 p)."""
        p, x = self._cut_probs(), self.probs - 0.5
        exact = _negative_logit(p).abs().log() - (1 - 2 * p).abs().log()
        taylor = math.log(2.0) + (4 / 3 + 104 / 45 * x.square()) * x.square()
        return vesta.where(self._outside(), exact, taylor)

    @property
    def mean(self) -> Tensor:
        p, x = self._cut_probs(), self.probs - 0.5
        exact = p / (2 * p - 1) + _negative_logit(p).reciprocal()
        return vesta.where(self._outside(), exact, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        p, x = self._cut_probs(), (self.probs - 0.5).square()
        exact = p * (p - 1) / (1 - 2 * p).square() + _negative_logit(p).square().reciprocal()
        return vesta.where(self._outside(), exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(vesta.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with vesta.no_grad():
            return self.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # The Bernoulli distribution's log(p**x (1 - p)**(1 - x)), which holds for all x in [0, 1].
        inside = -binary_cross_entropy_with_logits(logits, value, reduction="none")
        return inside + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = vesta.where(self._outside(), exact, value)
        return vesta.where(value <= 0, 0.0, vesta.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return vesta.where(self._outside(), exact, value)

    def entropy(self) -> Tensor:
        failure = (-self.probs).log1p()
        return self.mean * (failure - self.probs.log()) - self._cont_bern_log_norm() - failure

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (probs_to_logits(self.probs, is_binary=True),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x), by its series near 0."""
        near = (x > self._lims[0] - 0.5) & (x < self._lims[1] - 0.5)
        far = vesta.where(near, 1.0, x)
        exact = (far.exp() - 1).abs().log() - far.abs().log()
        return vesta.where(near, 0.5 * x + x.square() / 24 - x.square().square() / 2880, exact)
