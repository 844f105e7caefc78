"""The exponential distribution."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import expm1
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution with density rate exp(-rate x) for x >= 0.

    Args:
        rate: the inverse of the mean; positive, a tensor or number.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 19.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Exponential
        >>> Exponential(vesta.tensor([0.5, 2.0])).mean
        tensor([2.0000, 0.5000])
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"rate": 0}

    def __init__(self, rate: Real, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return vesta.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.reciprocal().square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return -(-vesta.rand(shape, dtype=self.rate.dtype, device=self.rate.device)).log1p() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -(-x).log()
