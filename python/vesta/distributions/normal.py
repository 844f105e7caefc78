"""The normal distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import erfinv
from .exp_family import ExponentialFamily
from .utils import _standard_normal, broadcast_all

__all__ = ["Normal"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Normal(ExponentialFamily):
    """The normal distribution with density exp(-((x - loc) / scale)**2 / 2) / (scale sqrt(2 pi)).

    Args:
        loc: the mean; a tensor or number. The two broadcast.
        scale: the standard deviation; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 13.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Normal
        >>> Normal(0.0, 2.0).log_prob(vesta.tensor(2.0))
        tensor(-2.1121)
        >>> Normal(0.0, 2.0)
        Normal(loc: 0.0, scale: 2.0)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
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
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -0.5 * ((value - self.loc) / self.scale).square() - self.scale.log() - _HALF_LOG_2PI

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * vesta.erfc((self.loc - value) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * math.sqrt(2) * erfinv(2 * value - 1)

    def entropy(self) -> Tensor:
        return 0.5 + _HALF_LOG_2PI + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        precision = self.scale.square().reciprocal()
        return self.loc * precision, -0.5 * precision

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
