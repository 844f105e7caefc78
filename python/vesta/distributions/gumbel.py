"""The Gumbel distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution with the distribution function exp(-exp(-(x - loc) / scale)).

    Args:
        loc: the mode; a tensor or number. The two broadcast.
        scale: the scale; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2, chapter 22.

    Example::

        >>> from vesta.distributions import Gumbel
        >>> Gumbel(0.0, 1.0).mean
        tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _parameters = {"loc": 0, "scale": 0}

    def __init__(self, loc: Real, scale: Real, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = vesta.finfo(self.loc.dtype)
        low, high = vesta.full_like(self.loc, limits.tiny), vesta.full_like(self.loc, 1 - limits.eps)
        steps = [
            ExpTransform().inv,
            AffineTransform(0, -vesta.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(self.loc, -self.scale),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
