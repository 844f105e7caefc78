"""The Pareto distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """The Pareto distribution with density alpha scale**alpha / x**(alpha + 1) for x >= scale.

    Args:
        scale: the smallest value; positive, a tensor or number. The two broadcast.
        alpha: the shape; positive. The mean is infinite up to 1, the variance up to 2.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 20.

    Example::

        >>> from vesta.distributions import Pareto
        >>> Pareto(1.0, 3.0).mean
        tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    _parameters = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Real, alpha: Real, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        steps = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args=validate_args), steps, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = vesta.where(self.alpha > 1, self.alpha, 2.0)
        return vesta.where(self.alpha > 1, a * self.scale / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = vesta.where(self.alpha > 2, self.alpha, 3.0)
        return vesta.where(self.alpha > 2, self.scale.square() * a / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
