"""The Poisson distribution."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import _sampling, constraints
from ._special import lgamma, xlogy
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution of counts k with probabilities rate**k exp(-rate) / k!, as floats.

    Args:
        rate: the mean; nonnegative, a tensor or number.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 4.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Poisson
        >>> Poisson(2.0).log_prob(vesta.tensor(0.0))
        tensor(-2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameters = {"rate": 0}

    def __init__(self, rate: Real, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with vesta.no_grad():
            return _sampling.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp()
