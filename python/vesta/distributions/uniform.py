"""The uniform distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution on [low, high).

    Args:
        low: the lower end, which may be drawn; a tensor or number. The two broadcast.
        high: the upper end, which is not drawn; greater than ``low``.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2, chapter 26.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Uniform
        >>> Uniform(0.0, 4.0).cdf(vesta.tensor([1.0, 3.0]))
        tensor([0.2500, 0.7500])
    """

    has_rsample = True
    _parameters = {"low": 0, "high": 0}

    def __init__(self, low: Real, high: Real, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * math.nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        fraction = vesta.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + fraction * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = (value >= self.low) & (value < self.high)
        return vesta.where(inside, -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
