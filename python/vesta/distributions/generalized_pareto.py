"""The generalized Pareto distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import expm1
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution with the survival function (1 + k z)**(-1 / k), z = (x - loc) / scale.

    For a concentration k of 0 it is exponential, exp(-z); for k = -1 uniform.

    Args:
        loc: the smallest value; a tensor or number. The three broadcast.
        scale: the scale; positive.
        concentration: k. The mean exists below 1, the variance below 1 / 2.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 20.12.

    Example::

        >>> import vesta
        >>> from vesta.distributions import GeneralizedPareto
        >>> GeneralizedPareto(0.0, 1.0, -1.0).cdf(vesta.tensor(0.25))
        tensor(0.2500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _parameters = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Real, scale: Real, concentration: Real, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        k = self.concentration
        return constraints.interval(self.loc, vesta.where(k < 0, self.loc - self.scale / k, math.inf))

    def _near_zero(self) -> tuple[Tensor, Tensor]:
        """Returns where k is taken as 0, and k, replaced by 1 there."""
        near = self.concentration.abs() <= 1e-8
        return near, vesta.where(near, 1.0, self.concentration)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(vesta.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        near, k = self._near_zero()
        z = (value - self.loc) / self.scale
        power = 1 / k + 1
        curved = vesta.where(power == 0, 0.0, power * (k * z).log1p())
        return -self.scale.log() - vesta.where(near, z, curved)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the probability of a draw above ``value``."""
        if self._validate_args:
            self._validate_sample(value)
        near, k = self._near_zero()
        z = (value - self.loc) / self.scale
        return vesta.where(near, -z, -(k * z).log1p() / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Returns the logarithm of ``cdf``."""
        return self.cdf(value).log()

    def cdf(self, value: Tensor) -> Tensor:
        return -expm1(self.log_survival_function(value).clamp(max=0))  # 0 below the support

    def icdf(self, value: Tensor) -> Tensor:
        near, k = self._near_zero()
        log_left = (-value).log1p()
        return self.loc + self.scale * vesta.where(near, -log_left, expm1(-k * log_left) / k)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return vesta.where(k < 1, self.loc + self.scale / (1 - vesta.where(k < 1, k, 0.5)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        safe = vesta.where(self.concentration < 0.5, self.concentration, 0.25)
        value = self.scale.square() / ((1 - safe).square() * (1 - 2 * safe))
        return vesta.where(self.concentration < 0.5, value, math.nan)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
