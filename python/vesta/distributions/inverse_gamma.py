"""The inverse gamma distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real

from . import constraints
from ._special import digamma, lgamma
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / X for a gamma X.

    Args:
        concentration: the shape of X; positive, a tensor or number. The two broadcast.
        rate: the rate of X; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 17.8.

    Example::

        >>> from vesta.distributions import InverseGamma
        >>> InverseGamma(3.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]
    _parameters: dict[str, int | None] = {}

    def __init__(self, concentration: Real, rate: Real, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inversion = PowerTransform(-vesta.ones((), dtype=base.rate.dtype, device=base.rate.device))
        super().__init__(base, inversion, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return vesta.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return vesta.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + lgamma(a) - (1 + a) * digamma(a)
