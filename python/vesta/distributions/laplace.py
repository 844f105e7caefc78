"""The Laplace distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import expm1
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution with density exp(-|x - loc| / scale) / (2 scale).

    Args:
        loc: the mean; a tensor or number. The two broadcast.
        scale: the mean distance from ``loc``; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2, chapter 24.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Laplace
        >>> Laplace(0.0, 1.0).cdf(vesta.tensor(0.0))
        tensor(0.5000)
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
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = vesta.finfo(self.loc.dtype).eps
        # (-1, 1): the quantile of either end would be infinite.
        side = vesta.rand(shape, dtype=self.loc.dtype, device=self.loc.device) * (2 - eps) + (eps - 1)
        return self.loc - self.scale * side.sign() * (-side.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * expm1(-distance.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        side = value - 0.5
        return self.loc - self.scale * side.sign() * (-2 * side.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
