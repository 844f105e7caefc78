"""The Cauchy distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import atan, tan
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution with density 1 / (pi scale (1 + ((x - loc) / scale)**2)); it has no mean.

    Args:
        loc: the median; a tensor or number. The two broadcast.
        scale: half the width at half the maximum; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 16.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Cauchy
        >>> Cauchy(0.0, 1.0).cdf(vesta.tensor(1.0))
        tensor(0.7500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = {"loc": 0, "scale": 0}

    def __init__(self, loc: Real, scale: Real, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return vesta.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return vesta.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        # Uniform numbers have a fixed absolute step; float64 keeps the far tails apart.
        angle = math.pi * (vesta.rand(shape, dtype=vesta.float64, device=self.loc.device) - 0.5)
        return self.loc + tan(angle).to(self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - ((value - self.loc) / self.scale).square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tan(math.pi * (value - 0.5))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
