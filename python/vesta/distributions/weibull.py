"""The Weibull distribution."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._types import Real

from . import constraints
from ._special import lgamma
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution with the distribution function 1 - exp(-(x / scale)**concentration).

    Args:
        scale: the scale; positive, a tensor or number. The two broadcast.
        concentration: the shape k; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 21.

    Example::

        >>> from vesta.distributions import Weibull
        >>> Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _parameters = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale: Real, concentration: Real, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(vesta.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """E (x / scale)**n."""
        return lgamma(1 + n * self.concentration_reciprocal).exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
