"""The Kumaraswamy distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real

from . import constraints
from ._special import digamma, lgamma
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution with the distribution function 1 - (1 - x**a)**b on [0, 1].

    Args:
        concentration1: a, positive; a tensor or number. The two broadcast.
        concentration0: b, positive.
        validate_args: whether arguments and values are checked.

    Formulas: M. C. Jones, Kumaraswamy's distribution, Statistical Methodology 6, 2009.

    Example::

        >>> from vesta.distributions import Kumaraswamy
        >>> Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]
    _parameters = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Real, concentration0: Real, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(vesta.zeros_like(a), vesta.ones_like(a), validate_args=validate_args)
        steps = [PowerTransform(b.reciprocal()), AffineTransform(1.0, -1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E x**n = b B(1 + n / a, b)."""
        b, first = self.concentration0, 1 + n / self.concentration1
        return b * (lgamma(first) + lgamma(b) - lgamma(first + b)).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """((a - 1) / (a b - 1))**(1 / a) for a, b >= 1, else NaN."""
        a, b = self.concentration1, self.concentration0
        return vesta.where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** a.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
