"""The half-normal distribution, and what it shares with the half-Cauchy distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


class Half(TransformedDistribution):
    """The base of distributions of |X| for an X that is symmetric about 0: twice the density for x >= 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True  # type: ignore[assignment]

    @property
    def scale(self) -> Tensor:
        """The scale of X."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return vesta.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = vesta.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        return vesta.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """The distribution of |X| for a normal X of mean 0.

    Args:
        scale: the standard deviation of X; positive, a tensor or number.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 13.10.

    Example::

        >>> from vesta.distributions import HalfNormal
        >>> HalfNormal(1.0).mean
        tensor(0.7979)
    """

    _parameters: dict[str, int | None] = {}

    def __init__(self, scale: Real, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
